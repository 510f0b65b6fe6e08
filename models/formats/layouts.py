"""Find a folder's weights, and read them as they are stored, with foreign names and matrices. Without Paddle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from onion.errors import WeightsError
from onion.models.formats.ernie_static import read_static_folder
from onion.models.formats.name_mapping import from_static
from onion.models.formats.paddle_file import read_pdparams
from onion.models.formats.paths import is_file, reading
from onion.models.formats.safetensors_file import read_safetensors
from onion.models.formats.torch_file import read_torch

SAFETENSORS = "model.safetensors"
PDPARAMS = "model_state.pdparams"
TORCH = "pytorch_model.bin"
STATIC = "params"
INDEX = ".index.json"
# A variable of every ERNIE; a folder with it contains static ERNIE's parameters.
STATIC_MARK = "word_embedding"

Reader = Callable[[Path], dict[str, np.ndarray]]
READERS: dict[str, Reader] = {SAFETENSORS: read_safetensors, PDPARAMS: read_pdparams, TORCH: read_torch}


def read_stored(
    folder: Path, is_hugging_face: Callable[[Mapping[str, np.ndarray]], bool]
) -> tuple[Path, dict[str, np.ndarray], tuple[str, ...], str]:
    """Read the first kind of weights in the folder.

    Args:
        folder: the folder.
        is_hugging_face: whether arrays are stored as Hugging Face's, by their names and shapes.

    Returns:
        the file (or folder of files), stored name -> array, names of unread files, and the layout: ``"huggingface"``,
        ``"onion"`` (onion's names in a safetensors file), ``"paddlenlp"`` (onion's names in Paddle's file) or
        ``"static"``.

    Raises:
        WeightsError: there are no weights, or they are damaged.
    """
    if (path := _dynamic(folder)) is not None:
        name = path.name.removesuffix(INDEX)
        stored = READERS[name](path) if path.name == name else _read_shards(path, READERS[name])
        if is_hugging_face(stored):
            return path, stored, (), "huggingface"
        return path, stored, (), "paddlenlp" if name == PDPARAMS else "onion"
    if (path := _static(folder)) is not None:
        stored = read_static_folder(path, lambda variable: from_static(variable) is not None)
        unread = sorted(entry.name for entry in path.iterdir() if from_static(entry.name) is None)
        return path, stored, tuple(unread) if path.name == STATIC else (), "static"
    raise WeightsError(
        f"{folder / SAFETENSORS}: no such file, and no {PDPARAMS}, {TORCH} or {STATIC}/{STATIC_MARK} either"
    )


def holds_static(folder: Path) -> bool:
    """Return whether the weights that are read from this folder are static ERNIE's."""
    return _dynamic(folder) is None and _static(folder) is not None


def _dynamic(folder: Path) -> Path | None:
    """Return the file, or the index of several, that takes precedence over static ERNIE's weights."""
    paths = (folder / file for name in READERS for file in (name, name + INDEX))
    return next((path for path in paths if is_file(path)), None)


def _static(folder: Path) -> Path | None:
    return next((path for path in (folder / STATIC, folder) if is_file(path / STATIC_MARK)), None)


def _read_shards(index: Path, reader: Reader) -> dict[str, np.ndarray]:
    """Read weights in several files by the index, which maps parameters to files."""
    try:
        with reading(index):
            places = json.loads(index.read_bytes())["weight_map"]
        files = sorted({_beside(index, file) for file in places.values()})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise WeightsError(f"{index}: not an index of weights ({error}); download it again") from error
    shards = {file.name: reader(file) for file in files}
    lost = [name for name, file in places.items() if name not in shards[file]]
    if lost:
        raise WeightsError(f"{index}: {places[lost[0]]} lacks {lost[0]} ({len(lost)} parameters are missing)")
    return {name: shards[file][name] for name, file in places.items()}


def _beside(index: Path, name: str) -> Path:
    """Return a file in the index's folder; an index may not refer to others."""
    if not isinstance(name, str) or Path(name).name != name or name in (".", "..") or set(name) & {"\\", "\0"}:
        raise ValueError(f"{str(name)[:60]!r} is not a plain file name")
    return index.with_name(name)
