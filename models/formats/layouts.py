"""Which weights a folder holds, and reading them as they are stored: names and matrices of where they come from.

Without Paddle.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from onion.errors import WeightsError
from onion.models.formats.naming import from_static, is_hugging_face, without_prefix
from onion.models.formats.paddle_file import read_pdparams
from onion.models.formats.static_file import read_static_folder
from onion.models.formats.tensors import read_safetensors
from onion.models.formats.torch_file import read_torch

SAFETENSORS = "model.safetensors"
PDPARAMS = "model_state.pdparams"
TORCH = "pytorch_model.bin"
STATIC = "params"
# The variable that every ERNIE has; a folder with it is one of static ERNIE's parameters.
STATIC_MARK = "word_embedding"

Reader = Callable[[Path], dict[str, np.ndarray]]


def read_stored(folder: Path) -> tuple[Path, dict[str, np.ndarray], tuple[str, ...], str]:
    """Read the first kind of weights that the folder holds.

    Returns:
        the file (or folder of files), stored name -> array, names of files left unread, and the layout:
        ``"huggingface"``, ``"onion"`` (our names, in a safetensors file), ``"paddlenlp"`` (our names, in Paddle's
        file) or ``"static"``.

    Raises:
        WeightsError: there are none, or damaged ones.
    """
    for name, reader in ((SAFETENSORS, read_safetensors), (PDPARAMS, read_pdparams), (TORCH, read_torch)):
        for path in (folder / name, folder / f"{name}.index.json"):
            if not path.is_file():
                continue
            stored = reader(path) if path.name == name else _read_shards(path, reader)
            if is_hugging_face([without_prefix(stored_name) for stored_name in stored]):
                return path, stored, (), "huggingface"
            return path, stored, (), "paddlenlp" if name == PDPARAMS else "onion"
    for path in (folder / STATIC, folder):
        if (path / STATIC_MARK).is_file():
            stored = read_static_folder(path, lambda variable: from_static(variable) is not None)
            unread = sorted(entry.name for entry in path.iterdir() if from_static(entry.name) is None)
            return path, stored, tuple(unread) if path.name == STATIC else (), "static"
    raise WeightsError(
        f"{folder / SAFETENSORS}: no such file, and no {PDPARAMS}, {TORCH} or {STATIC}/{STATIC_MARK} either"
    )


def _read_shards(index: Path, reader: Reader) -> dict[str, np.ndarray]:
    """Read weights that are spread over several files: the index says which parameter stands in which."""
    try:
        places = json.loads(index.read_bytes())["weight_map"]
        files = sorted({_beside(index, file) for file in places.values()})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise WeightsError(f"{index}: not an index of weights ({error}); fetch it again") from error
    except OSError as error:
        raise WeightsError(f"{index}: cannot read: {error.strerror}") from error
    shards = {file.name: reader(file) for file in files}
    lost = [name for name, file in places.items() if name not in shards[file]]
    if lost:
        raise WeightsError(f"{index}: {places[lost[0]]} lacks {lost[0]} ({len(lost)} are not where the index says)")
    return {name: shards[file][name] for name, file in places.items()}


def _beside(index: Path, name: str) -> Path:
    """A file of the index's own folder; an index may not point elsewhere."""
    if not isinstance(name, str) or Path(name).name != name or name in (".", "..") or "\\" in name:
        raise ValueError(f"{str(name)[:60]!r} is no plain file name")
    return index.with_name(name)
