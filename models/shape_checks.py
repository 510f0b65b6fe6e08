"""Check that arrays fit parameters, with one error that lists all differences. Without Paddle."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from onion.errors import WeightsError
from onion.models.pretrained_config import Shape

log = logging.getLogger(__name__)

NAMES_SHOWN = 5
# Embedding -> the key of the config for its number of rows.
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
    """Check that arrays fit parameters.

    Args:
        path: for the message.
        arrays: the arrays.
        shapes: the parameters.
        optional: prefixes of parts that may be missing as a whole.

    Returns:
        Names of the parameters that are missing and may be.

    Raises:
        WeightsError: arrays do not fit; the message lists all of them.
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
    """Name the key of the config that an embedding contradicts, if only its number of rows differs."""
    if name not in ROWS or array.ndim != 2 or array.shape[1] != shape[1]:
        return ""
    return f" (the config's {ROWS[name]} is {shape[0]}, the weights' {array.shape[0]})"


def _finite(array: np.ndarray) -> bool:
    return bool(np.isfinite(array).all())


def _cut(names: list[str]) -> str:
    """Join names for a message, shortened if there are more than ``NAMES_SHOWN``."""
    rest = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{rest}"
