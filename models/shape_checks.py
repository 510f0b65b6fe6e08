"""Whether arrays fit the parameters they are for: one error that lists all that is wrong. Without Paddle."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from onion.errors import WeightsError
from onion.models.pretrained_config import Shape

log = logging.getLogger(__name__)

NAMES_SHOWN = 5
# Which key of the config says how many rows an embedding has.
ROWS = {
    "embeddings.word_embeddings.weight": "vocab_size",
    "word_embedding.weight": "vocab_size",
    "embeddings.position_embeddings.weight": "max_position_embeddings",
    "embeddings.token_type_embeddings.weight": "type_vocab_size",
    "embeddings.task_type_embeddings.weight": "task_type_vocab_size",
}


def check_fit(
    path: Path, arrays: Mapping[str, np.ndarray], shapes: Mapping[str, Shape], optional: tuple[str, ...]
) -> tuple[str, ...]:
    """Raise one error that lists all that is wrong with the arrays, if anything is.

    Args:
        path: for the message.
        arrays: what there is.
        shapes: what there should be.
        optional: how the names of parts begin that may be missing, as a whole: half a part is damage.

    Returns:
        Names of the parameters that are missing and may be.
    """
    whole = [part for part in optional if not any(name.startswith(part) for name in arrays if name in shapes)]
    missing = [name for name in shapes if name not in arrays]
    fresh = tuple(name for name in missing if name.startswith(tuple(whole)))
    misshapen = [
        f"{name} is {list(array.shape)}, not {list(shapes[name])}{_rows(name, array, shapes[name])}"
        for name, array in arrays.items()
        if name in shapes and array.shape != tuple(shapes[name])
    ]
    complaints = {
        "missing": [name for name in missing if name not in fresh],
        "unexpected": [name for name in arrays if name not in shapes],
        "misshapen": misshapen,
        "not floating-point": [name for name, array in arrays.items() if array.dtype.kind != "f"],
        "not finite": [name for name, array in arrays.items() if not _finite(array)],
    }
    found = {what: names for what, names in complaints.items() if names}
    if found:
        for what, names in found.items():
            log.debug("%s: %s: %s", path, what, ", ".join(names))
        listed = "; ".join(f"{what}: {_cut(names)}" for what, names in found.items())
        raise WeightsError(f"{path}: the weights do not fit the config: {listed}")
    return fresh


def _rows(name: str, array: np.ndarray, shape: tuple[int, ...]) -> str:
    """Which key of the config an embedding contradicts, where only its number of rows is wrong."""
    if name not in ROWS or array.ndim != 2 or array.shape[1] != shape[1]:
        return ""
    return f" (the config's {ROWS[name]} is {shape[0]}, the weights' {array.shape[0]})"


def _finite(array: np.ndarray) -> bool:
    return bool(np.isfinite(array).all())


def _cut(names: list[str]) -> str:
    """Names for a message, cut when there are many."""
    rest = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{rest}"
