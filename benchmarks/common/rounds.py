"""Rounds in which sides take turns, so that what slows the machine for a while slows all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.common.sides import Answer, Side, Visitor

Round = dict[str, Answer]
"""What each side told, by its name."""


def alternate(sides: Sequence[Side | Visitor], rounds: int, **asked: Any) -> list[Round]:
    """Ask all sides in every round; who begins goes round too.

    Args:
        sides: ready ones.
        rounds: how many.
        asked: of each side in each round.

    Raises:
        FailedError: a side ended.
    """
    return [_round([*sides[turn % len(sides) :], *sides[: turn % len(sides)]], asked) for turn in range(rounds)]


def _round(sides: Sequence[Side | Visitor], asked: Mapping[str, Any]) -> Round:
    return {side.name: side.round(**asked) for side in sides}


def ratios(rounds: Sequence[Round], of: str, to: str, figure: str) -> list[float]:
    """Return, for each round, by how much one side's figure is that of another."""
    return [each[of][figure] / each[to][figure] for each in rounds]


def figures(rounds: Sequence[Round], side: str, figure: str) -> list[float]:
    """Return a figure of a side in each round."""
    return [float(each[side][figure]) for each in rounds]
