"""Samples that are made up, with as many tokens as the sentences of SST-2 have."""

from __future__ import annotations

from typing import Any

import numpy as np

VOCABULARY = 30_522
"""Of BERT; the first ids are those of special tokens."""

FIRST, CLS, SEP = 1000, 101, 102

MEDIAN, SPREAD, SHORTEST, LONGEST = 11, 0.6, 3, 66
"""Of the lengths, which are drawn from a log-normal distribution: that gives a mean of 13 tokens, and 32 or so in the
longest of 32 samples, as the training file of SST-2 does, special tokens included."""


def made_up(count: int, seed: int) -> list[dict[str, Any]]:
    """Return samples as they stand in a spool: ``{"ids": [token, ...], "label": 0 or 1}``."""
    random = np.random.default_rng(seed)
    lengths = np.clip(np.rint(random.lognormal(np.log(MEDIAN), SPREAD, count)), SHORTEST, LONGEST).astype(int)
    return [{"ids": _ids(random, length), "label": int(random.integers(2))} for length in lengths]


def _ids(random: np.random.Generator, length: int) -> list[int]:
    return [CLS, *random.integers(FIRST, VOCABULARY, length - 2).tolist(), SEP]
