"""Which weights a folder holds, and reading them as they are stored: names and matrices of where they come from.

Without Paddle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from onion.errors import WeightsError
from onion.models.formats.ernie_static import read_static_folder
from onion.models.formats.name_mapping import from_static
from onion.models.formats.paddle_file import read_pdparams
from onion.models.formats.paths import is_file
from onion.models.formats.safetensors_file import read_safetensors
from onion.models.formats.torch_file import read_torch

SAFETENSORS = "model.safetensors"
PDPARAMS = "model_state.pdparams"
TORCH = "pytorch_model.bin"
STATIC = "params"
INDEX = ".index.json"
# The variable that every ERNIE has; a folder with it is one of static ERNIE's parameters.
STATIC_MARK = "word_embedding"

Reader = Callable[[Path], dict[str, np.ndarray]]
READERS: dict[str, Reader] = {SAFETENSORS: read_safetensors, PDPARAMS: read_pdparams, TORCH: read_torch}


def read_stored(
    folder: Path, is_hugging_face: Callable[[Mapping[str, np.ndarray]], bool]
) -> tuple[Path, dict[str, np.ndarray], tuple[str, ...], str]:
    """Read the first kind of weights that the folder holds.

    Args:
        folder: where they are.
        is_hugging_face: tells whether arrays are stored as Hugging Face does, by their names and shapes.

    Returns:
        the file (or folder of files), stored name -> array, names of files left unread, and the layout:
        ``"huggingface"``, ``"onion"`` (our names, in a safetensors file), ``"paddlenlp"`` (our names, in Paddle's
        file) or ``"static"``.

    Raises:
        WeightsError: there are none, or damaged ones.
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
    """Whether the weights that are read from this folder are static ERNIE's."""
    return _dynamic(folder) is None and _static(folder) is not None


def _dynamic(folder: Path) -> Path | None:
    """The file, or the index of several, that is read before static ERNIE's weights."""
    paths = (folder / file for name in READERS for file in (name, name + INDEX))
    return next((path for path in paths if is_file(path)), None)


def _static(folder: Path) -> Path | None:
    return next((path for path in (folder / STATIC, folder) if is_file(path / STATIC_MARK)), None)


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
    if not isinstance(name, str) or Path(name).name != name or name in (".", "..") or set(name) & {"\\", "\0"}:
        raise ValueError(f"{str(name)[:60]!r} is no plain file name")
    return index.with_name(name)
