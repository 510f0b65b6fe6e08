"""Arrays that are computed from a corpus: in memory, or, where that takes seconds, once for all runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from onion.tasks.data.features.kept_arrays import Arrays, kept_arrays

KEPT_FROM = 1 << 24
"""Tokens of a corpus of which arrays are kept in the cache of features."""


def derived(tokens: int, key: str, about: Mapping[str, str], make: Callable[[], Iterable[Arrays]]) -> Arrays:
    """Return arrays of a corpus; see :func:`onion.tasks.data.features.kept_arrays.kept_arrays`.

    Args:
        tokens: of the corpus.
        key: a digest of everything that they depend on.
        about: what the cache tells of them.
        make: yields at least one part.
    """
    if tokens >= KEPT_FROM:
        return kept_arrays(key, about, make)
    found = [*make()]
    return {name: np.concatenate([part[name] for part in found]) for name in found[0]}
