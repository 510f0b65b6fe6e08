"""What computes the predictions of a folder: onion's own network, ONNX Runtime, or a program of Paddle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from onion import GradientMachine, RunnerItem
from onion.device import paddle
from onion.errors import DataError
from onion.messages import shown
from onion.models.families import read_config
from onion.models.formats.safetensors_file import as_float32, from_bfloat16, read_safetensors
from onion.tasks.export.exported_network import ExportedForward, ExportedNetwork
from onion.tasks.export.graph import graph_of_task, input_names
from onion.tasks.export.manifest import Manifest, is_exported, read_manifest
from onion.tasks.export.names import DECODER, DYNAMIC, HUGGINGFACE, ONNX, ONNX_FILE, PADDLE
from onion.tasks.export.onnx_file import onnx_model
from onion.tasks.export.sessions import OnnxSession, ProgramSession
from onion.tasks.task import Task

ENGINES = (PADDLE, ONNX)

Weights: TypeAlias = Callable[[], Mapping[str, Any]]


def innermost_item(
    folder: Path, task: Task, weights: Weights, engine: str | None = None, threads: int | None = None
) -> RunnerItem:
    """Return the item that computes the outputs of a trained model.

    Args:
        folder: of ``onion train``, ``onion push --output`` or ``onion export``.
        task: of the model.
        weights: returns the parameters of its network by path, if they are asked for.
        engine: ``paddle`` or ``onnx``. Default: that of an exported folder; of others Paddle, if it is installed.
        threads: that ONNX Runtime computes on.

    Raises:
        DataError: there is no such engine, or the folder is for another one.
        CheckpointError: the folder is damaged, or has no model.
        OnionError: the engine is not installed.
    """
    if engine not in (None, *ENGINES):
        raise DataError(f"engine {shown(engine)}: must be one of {', '.join(ENGINES)}")
    manifest = read_manifest(folder) if is_exported(folder) else None
    if manifest is not None and manifest.format != HUGGINGFACE:
        return ExportedForward(_exported(folder, task, manifest, engine, threads))
    if engine == ONNX or (engine is None and not needs_paddle(folder)):
        arrays = _arrays(weights())
        graph = graph_of_task(task, read_config(folder / "config.json"))
        model = onnx_model(graph, arrays).SerializeToString()
        return ExportedForward(ExportedNetwork(task, OnnxSession(model, threads), arrays))
    return GradientMachine(_network(folder, task, weights()))


def needs_paddle(folder: Path) -> bool:
    """Return whether a model in a folder, or elsewhere, loads Paddle, if nobody asks for an engine."""
    if is_exported(folder) and read_manifest(folder).format == ONNX:
        return False
    return _is_installed("paddle") or not (_is_installed("onnx") and _is_installed("onnxruntime"))


def _exported(folder: Path, task: Task, manifest: Manifest, engine: str | None, threads: int | None) -> ExportedNetwork:
    if engine not in (None, manifest.format):
        raise DataError(f"{folder} is for the engine {manifest.format}; export the run again for {engine}")
    decoding = read_safetensors(folder / DECODER) if (folder / DECODER).is_file() else {}
    if manifest.format == ONNX:
        session = OnnxSession(folder / ONNX_FILE, threads)
        return ExportedNetwork(task, session, decoding, alone=manifest.int8 == DYNAMIC)
    names = input_names(read_config(folder / "config.json"), task.head_over)
    return ExportedNetwork(task, ProgramSession(folder, names), decoding)


def _network(folder: Path, task: Task, weights: Mapping[str, Any]) -> Any:
    paddle()  # says how to install it, before modules ask for it
    from onion.items.gradient_machine import load_network
    from onion.models.auto import new_encoder

    network = task.network(new_encoder(read_config(folder / "config.json")))
    load_network(network, weights)
    network.eval()
    return network


def _arrays(weights: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return weights as arrays of float32, whatever they were trained in."""
    arrays = {path: np.asarray(each) for path, each in weights.items()}
    return {path: from_bfloat16(each) if each.dtype == np.uint16 else as_float32(each) for path, each in arrays.items()}


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
