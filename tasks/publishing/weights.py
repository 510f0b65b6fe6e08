"""A task's network as transformers stores it: ``model.safetensors`` with the encoder and the head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from onion.models.families import FAMILIES, read_config
from onion.models.formats.layouts import SAFETENSORS
from onion.models.formats.name_mapping import HEADS
from onion.models.formats.safetensors_file import as_float32, from_bfloat16, read_safetensors
from onion.models.pretrained_config import PretrainedConfig
from onion.models.weights import read_weights, write_weights
from onion.tasks.networks.paths import ENCODER
from onion.tasks.publishing.transformers_names import LAYER, pooler_copy, stored_names

POOLER = f"{ENCODER}pooler.dense."


def write_network(folder: Path, network: Mapping[str, np.ndarray], config: PretrainedConfig, task: str) -> Path:
    """Write the weights of a task's network in transformers' layout; return the file.

    Args:
        folder: the target.
        network: path -> array, of the network of ``Task.network``; 16-bit numbers become float32.
        config: of the encoder.
        task: name of the task.

    Raises:
        WeightsError: the file cannot be written.
    """
    family, naming = config.model_type, FAMILIES[config.model_type].naming
    prefix = f"{family}." if f"{family}." in naming.prefixes else naming.prefixes[0]
    arrays = {
        path: from_bfloat16(each) if each.dtype == np.uint16 else as_float32(each) for path, each in network.items()
    }
    shared = {path.removeprefix(ENCODER): each for path, each in arrays.items() if path.startswith((ENCODER, HEADS))}
    head = dict(_head(arrays, task, family))
    return write_weights(folder, shared, "huggingface", prefix, config, head)


def _head(arrays: Mapping[str, np.ndarray], task: str, family: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield name and array of what the file has besides the encoder and a pretraining head."""
    names = {ours: (stored, transposed) for stored, (ours, transposed) in stored_names(task, family).items()}
    copy = pooler_copy(task, family)
    for path, array in arrays.items():
        if path.startswith(POOLER) and copy is not None:
            part = path.removeprefix(POOLER)
            yield copy + part, array.T if part == "weight" else array
        elif path in names:
            stored, transposed = names[path]
            yield stored, array.T if transposed else array
        elif not path.startswith((ENCODER, HEADS)):
            yield LAYER + path, array


def read_network(folder: Path, task: str) -> dict[str, np.ndarray]:
    """Read what :func:`write_network` wrote.

    Raises:
        WeightsError: the file, or the config beside it, is missing or damaged.
    """
    family = read_config(folder).model_type
    weights = read_weights(folder)
    network = {**{f"{ENCODER}{name}": array for name, array in weights.arrays.items()}, **weights.heads}
    names, copy = stored_names(task, family), pooler_copy(task, family)
    stored = read_safetensors(weights.path)
    for name in weights.ignored:
        if copy is None or not name.startswith(copy):
            path, transposed = names.get(name, (name.removeprefix(LAYER), False))
            network[path] = stored[name].T if transposed else stored[name]
    return {path: np.ascontiguousarray(array) for path, array in network.items()}


def is_published(folder: Path) -> bool:
    """Return whether a folder with the record of a run has its weights as one model, instead of checkpoints."""
    return (folder / SAFETENSORS).is_file()
