"""What both sides share: texts to ids, timed, with a digest of the ids. Pure Python."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

TEXTS_PER_CALL = 1000
Answer = dict[str, Any]
Way = Callable[[Any], list[Any]]
"""From a tokenizer to the ids of all texts."""


def texts_a_second(ways: Mapping[str, Way], tokenizer: Callable[[], Any]) -> Callable[..., Answer]:
    """Return a round: texts a second of each way, and a digest of all ids if asked for."""

    def work(digest: bool = False) -> Answer:
        told: Answer = {}
        for name, way in ways.items():
            made = tokenizer()
            begun = perf_counter()
            ids = way(made)
            told[name] = len(ids) / (perf_counter() - begun)
            if digest:
                lines = "".join(f"{list(map(int, each))}\n" for each in ids)
                told[f"{name} digest"] = hashlib.sha256(lines.encode()).hexdigest()
        return told

    return work
