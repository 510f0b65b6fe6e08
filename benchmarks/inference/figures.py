"""From rounds to figures: texts a second, what a single text waits, by how much; and whether all computed the same."""

from __future__ import annotations

import base64
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.common.measured import Figure
from benchmarks.common.processes import FailedError
from benchmarks.common.rounds import Round, figures, ratios
from benchmarks.common.sides import Answer

CLOSE = 1e-4
ONION, TORCH, ONNX = "onion", "transformers", "ONNX Runtime"
INT8 = "ONNX Runtime int8"


class Goals(NamedTuple):
    """What is aimed at.

    Attributes:
        bulk: side -> at least so many times as fast with all texts.
        alone: with one text, at most so many times ONNX Runtime's median.
    """

    bulk: Mapping[str, float]
    alone: float


GOALS = Goals({TORCH: 2.0}, 1.0)
GOALS_AVX2 = Goals({TORCH: 2.0, ONNX: 1.0}, 1.3)

WAYS = {"classify": "classification", "embed": "embedding"}


def differences(results: Mapping[str, Answer], exact: Sequence[str]) -> dict[str, float]:
    """Return how far each side's numbers are from onion's at most.

    Args:
        results: of each side, way -> bytes of float32 in base 64.
        exact: sides that have to be equal to ``CLOSE``.

    Raises:
        FailedError: one is not, or gave another number of values.
    """
    own = results[ONION]
    found = {}
    for side, ways in results.items():
        if side == ONION:
            continue
        found[side] = max(_difference(ways[way], own[way.removesuffix(" in order")]) for way in ways)
        if side in exact and not found[side] <= CLOSE:
            raise FailedError(f"{side} computes something else than onion: the numbers differ by {found[side]:g}")
    return found


def _difference(one: str, other: str) -> float:
    left, right = (np.frombuffer(base64.b64decode(each), "<f4") for each in (one, other))
    return float(np.abs(left - right).max()) if left.shape == right.shape else float("inf")


def of_bulk(rounds: Sequence[Round], texts: int, title: str, goals: Mapping[str, float]) -> list[Figure]:
    """Return the speed of every side and way, and onion's as a ratio to it.

    Args:
        rounds: side -> way -> seconds for all texts.
        texts: how many.
        title: of the texts, in a few words.
        goals: side -> at least so many times as fast.
    """
    found = []
    for side, way in _ways(rounds[0]):
        if way == "tokenise":
            continue
        name = way.removesuffix(" in order")
        speed = [texts / each for each in figures(rounds, side, way)]
        ordered = f", {'as they come' if way != name else 'short ones first'}" if side == TORCH else ""
        found.append(Figure(f"{title}, {WAYS[name]}: {side}{ordered}", "texts a second", speed, digits=1))
        if side != ONION:
            times = [each[side][way] / each[ONION][name] for each in rounds]
            found.append(Figure("onion beside it", "times as fast", times, at_least=goals.get(side)))
    return found


def of_share(rounds: Sequence[Round], title: str) -> list[Figure]:
    """Return the share of tokenising in a classification of all texts."""
    sides = [side for side, way in _ways(rounds[0]) if way == "tokenise"]
    return [
        Figure(
            f"{title}, of it tokenising: {side}",
            "%",
            [100 * each[side]["tokenise"] / each[side]["classify"] for each in rounds],
            digits=1,
        )
        for side in sides
    ]


def of_singles(rounds: Sequence[Round], title: str) -> list[Figure]:
    """Return the median and the 99th percentile of what one text waits.

    Args:
        rounds: side -> way -> seconds of each text.
        title: of the texts.
    """
    found = []
    for side, way in _ways(rounds[0]):
        if way == "tokenise":
            continue
        waits = [[1000 * wait for wait in each[side][way]] for each in rounds]
        what = f"{title}, {WAYS[way]} of one text: {side}"
        found.append(Figure(f"{what}, p50", "ms", [statistics.median(each) for each in waits]))
        found.append(Figure(f"{what}, p99", "ms", [percentile(each, 99) for each in waits]))
    return found


def against_onnx(rounds: Sequence[Round], title: str, goal: float) -> list[Figure]:
    """Return by how much onion's p50 is that of ONNX Runtime in float32."""
    medians = [
        {side: {way: statistics.median(waits) for way, waits in ways.items()} for side, ways in each.items()}
        for each in rounds
    ]
    return [
        Figure(
            f"{title}, {told} of one text: onion's p50 to ONNX Runtime's",
            "",
            ratios(medians, ONION, ONNX, way),
            at_most=goal,
        )
        for way, told in WAYS.items()
    ]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, int(np.ceil(len(ordered) * share / 100)) - 1)]


def _ways(one: Round) -> list[tuple[str, str]]:
    return [(side, way) for side, ways in one.items() for way in ways]
