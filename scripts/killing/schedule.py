"""Which onion dies how: every kind as often as the others, every onion as often as its events allow."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping

from killing.attempt import Plan
from killing.points import KINDS, Census, kinds_in


def schedule(censuses: Mapping[str, Census], count: int, seed: int) -> Iterator[Plan]:
    """Give that many attempts, kind by kind, each of an onion that was tried least; each third kills twice."""
    having = {kind: [name for name in censuses if kind in kinds_in(censuses[name])] for kind in KINDS}
    kinds = [kind for kind in KINDS if having[kind]]
    tried: Counter[str] = Counter()
    chance = random.Random(seed)  # noqa: S311
    for number in range(count if kinds else 0):
        round_, place = divmod(number, len(kinds))
        least = min(tried[name] for name in having[kinds[place]])
        onion = chance.choice([name for name in having[kinds[place]] if tried[name] == least])
        tried[onion] += 1
        twice = (round_ + place) % 3 == 2  # other kinds in each round
        yield Plan(onion, kinds[place], twice, seed=f"{seed}-{number}")
