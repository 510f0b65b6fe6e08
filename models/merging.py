"""Adapters of LoRA among the arrays of a network, and how they become parts of its matrices. Without Paddle."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

ENDING = "_lora"
"""Of the name of an adapter, behind that of the parameter that it changes."""

PART = re.compile(rf"(.+){ENDING}\.(A|B|scale)")
"""The path of a part of an adapter: that of the parameter that it changes, and the name of the part."""


def has_adapters(paths: Iterable[str]) -> bool:
    """Return whether there are adapters among the parameters with these paths."""
    return any(PART.fullmatch(path) for path in paths)


def merged(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of a network by path, with adapters merged into the matrices that they change."""
    whole = {path: array for path, array in arrays.items() if not PART.fullmatch(path)}
    for path in whole:
        if f"{path}{ENDING}.A" in arrays:
            A, B, scale = (arrays[f"{path}{ENDING}.{part}"] for part in ("A", "B", "scale"))  # noqa: N806  the paper's
            whole[path] = whole[path] + (A * scale) @ B
    return whole
