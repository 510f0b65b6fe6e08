"""The weights of a folder: Hugging Face's layout or our own in, our own out. Without Paddle.

Our own layout is ``model.safetensors`` with PaddleNLP's parameter names and Paddle's [in, out] linear weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs
import numpy as np

from onion.errors import WeightsError
from onion.models.naming import NOT_THE_ENCODER, from_hugging_face, is_hugging_face, without_prefix
from onion.models.tensors import read_safetensors, write_safetensors

WEIGHTS_FILE = "model.safetensors"
# Models trained without a pooler (masked words, tokens, questions) store none; it starts anew and the report says so.
MAY_BE_MISSING = "pooler."
NAMES_SHOWN = 5


@attrs.frozen
class Weights:
    """What a folder's weights file holds for an encoder.

    Attributes:
        path: the file.
        arrays: our parameter name -> float32 array in Paddle's layout.
        ignored: names in the file that are not the encoder's (heads, buffers), as they stand there.
        layout: ``"huggingface"`` or ``"onion"``.
    """

    path: Path
    arrays: dict[str, np.ndarray] = attrs.field(repr=False)
    ignored: tuple[str, ...]
    layout: str

    def check(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[str, ...]:
        """Check that the arrays are those of an encoder with parameters of these shapes.

        Returns:
            Names of parameters the file may lack and does (the pooler's).

        Raises:
            WeightsError: parameters are missing, unexpected or misshapen, or hold values that are not finite; all that
                was found is said in one message, long lists cut.
        """
        missing = [name for name in shapes if name not in self.arrays]
        fresh = tuple(name for name in missing if name.startswith(MAY_BE_MISSING))
        if len(fresh) != sum(name.startswith(MAY_BE_MISSING) for name in shapes):
            fresh = ()  # half a pooler is damage
        misshapen = [
            f"{name} is {list(array.shape)}, not {list(shapes[name])}"
            for name, array in self.arrays.items()
            if name in shapes and array.shape != tuple(shapes[name])
        ]
        complaints = [
            *_listed("missing", [name for name in missing if name not in fresh]),
            *_listed("unexpected", [name for name in self.arrays if name not in shapes]),
            *_listed("misshapen", misshapen),
            *_listed("not floating-point", [name for name, array in self.arrays.items() if array.dtype.kind != "f"]),
            *_listed("not finite", [name for name, array in self.arrays.items() if not _finite(array)]),
        ]
        if complaints:
            raise WeightsError(f"{self.path}: the weights do not fit the config: {'; '.join(complaints)}")
        return fresh


def read_weights(folder: str | Path) -> Weights:
    """Read ``model.safetensors`` of a Hugging Face BERT folder, or of one that :func:`write_weights` wrote.

    Raises:
        WeightsError: no such folder or file, or a damaged one.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise WeightsError(f"{folder}: no such folder")
    path = folder / WEIGHTS_FILE
    stored = read_safetensors(path)
    foreign = is_hugging_face([without_prefix(name) for name in stored])
    arrays: dict[str, np.ndarray] = {}
    ignored = []
    for stored_name, array in stored.items():
        name = without_prefix(stored_name)
        if NOT_THE_ENCODER.match(name):
            ignored.append(stored_name)
            continue
        name, transpose = from_hugging_face(name) if foreign else (name, False)
        if name in arrays:
            raise WeightsError(f"{path}: {name} is stored twice")
        arrays[name] = array.T if transpose else array
    return Weights(path, arrays, tuple(ignored), "huggingface" if foreign else "onion")


def write_weights(folder: str | Path, arrays: Mapping[str, np.ndarray]) -> Path:
    """Write ``model.safetensors`` in our own layout; the folder is made, the file replaced as a whole or not at all.

    Args:
        folder: where to.
        arrays: our parameter name -> array.

    Returns:
        The file.

    Raises:
        WeightsError: it cannot be written.
    """
    path = make_folder(folder) / WEIGHTS_FILE
    write_safetensors(path, arrays)
    return path


def make_folder(folder: str | Path) -> Path:
    """Make a folder and those above it, if need be.

    Raises:
        WeightsError: it cannot be made.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WeightsError(f"{folder}: cannot make the folder: {error.strerror}") from error
    return folder


def _finite(array: np.ndarray) -> bool:
    return bool(np.isfinite(array).all())


def _listed(what: str, names: list[str]) -> list[str]:
    """``what`` with its names as one clause, cut when long; nothing when there are none."""
    if not names:
        return []
    rest = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return [f"{what}: {', '.join(names[:NAMES_SHOWN])}{rest}"]
