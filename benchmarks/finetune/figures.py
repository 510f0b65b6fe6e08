"""From rounds to figures: examples a second, by how much, the share of the machine's own speed; do all agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks.common.measured import Figure
from benchmarks.common.processes import FailedError
from benchmarks.common.rounds import Round, figures, ratios

CLOSE = 1e-3
ONION = "onion"
TRANSFORMERS, GROUPED = "Hugging Face Trainer", "Hugging Face Trainer, grouped by length"
PADDLENLP, PADDLENLP_SET = "PaddleNLP's Trainer", "PaddleNLP's Trainer with MKL_DEBUG_CPU_TYPE=5"
GOALS = {TRANSFORMERS: 2.0, GROUPED: 1.3, PADDLENLP: 4.0}
"""At least so many times as fast as each."""

GOALS_AVX2 = {"sst-2": GOALS | {TRANSFORMERS: 3.0}}
"""Part -> the same without AVX-512, where it is another: torch's products do not use it on AMD processors anyway."""

GOAL_SHARE = 0.6


def differences(losses: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return how far each side's losses are from onion's at most.

    Args:
        losses: of each side, a number a batch.

    Raises:
        FailedError: further than ``CLOSE``, or for another number of batches.
    """
    own = losses[ONION]
    found = {side: _difference(each, own) for side, each in losses.items() if side != ONION}
    for side, far in found.items():
        if not far <= CLOSE:
            raise FailedError(
                f"{side} does not do onion's work, so no times: costs of {list(losses[side])}, onion's {list(own)}"
            )
    return found


def _difference(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other) or not one:
        return float("inf")
    apart = [abs(left - right) for left, right in zip(one, other, strict=True)]
    return max(apart) if all(map(math.isfinite, apart)) else float("inf")


def of_speed(
    rounds: Sequence[Round], title: str, examples: int, steps: int, goals: Mapping[str, float]
) -> list[Figure]:
    """Return the examples a second of every side, and onion's as a ratio to each.

    Args:
        rounds: side -> ``seconds``, ``steps``.
        title: of the training.
        examples: that each side learns in a round.
        steps: in which it does.
        goals: side -> at least so many times as fast.

    Raises:
        FailedError: a side made another number of updates.
    """
    found = []
    for side in sorted(rounds[0], key=lambda name: name != ONION):
        for each in rounds:
            if each[side]["steps"] != steps:
                raise FailedError(f"{title}: {side} made {each[side]['steps']} updates, not {steps}")
        speed = [examples / seconds for seconds in figures(rounds, side, "seconds")]
        found.append(Figure(f"{title}: {side}", "examples a second", speed, digits=1))
        if side != ONION:
            times = ratios(rounds, side, ONION, "seconds")
            found.append(Figure("onion beside it", "times as fast", times, at_least=goals.get(side)))
    return found


def of_share(rounds: Sequence[Round], title: str) -> list[Figure]:
    """Return which share of onion's step its matrix products take by themselves."""
    shares = [each[ONION]["products"] / each[ONION]["step"] for each in rounds]
    return [Figure(f"{title}: the share of a step that Paddle's matmul takes", "", shares, at_least=GOAL_SHARE)]
