"""Accuracy over time as SVG: a line for each variant, a panel for each stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, LEFT, TOP, GAP = 860, 260, 50, 40, 50
LOW, HIGH = 0.1, 1.0  # the least and the greatest accuracy of a panel

COLOURS = ("#444444", "#1f77b4", "#d62728", "#ff9896", "#2ca02c", "#9467bd")
SMOOTH = 3  # points over which a line is the mean


@dataclass(frozen=True)
class Panel:
    """The curves of a stream.

    Attributes:
        title: above the panel.
        curves: variant -> its curves, one per seed; each point is the accuracy of as many samples.
        changes: the points after which the data change.
    """

    title: str
    curves: Mapping[str, Sequence[Sequence[float]]]
    changes: Sequence[float]


def picture(panels: Sequence[Panel], each: int) -> str:
    """Draw panels, one below the other; a point is ``each`` samples."""
    height = len(panels) * (HEIGHT + TOP + GAP)
    parts = [line for number, panel in enumerate(panels) for line in _panel(panel, number, each)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {height}" '
        'font-family="sans-serif" font-size="13">\n'
        f'<rect width="{LEFT + WIDTH + 20}" height="{height}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(panel: Panel, number: int, each: int) -> Iterator[str]:
    top = TOP + number * (HEIGHT + TOP + GAP)
    points = max((len(curve) for curves in panel.curves.values() for curve in curves), default=1)
    yield f'<text x="{LEFT}" y="{top - 22}" font-weight="bold">{panel.title}</text>'
    for accuracy in np.arange(2, 11, 2) / 10:
        y = _y(accuracy, top)
        yield f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#dddddd"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{100 * accuracy:.0f}</text>'
    for change in panel.changes:
        x = LEFT + WIDTH * change / points
        yield f'<path d="M{x:.1f} {top}v{HEIGHT}" stroke="#888888" stroke-dasharray="4 4"/>'
    for place, (variant, curves) in enumerate(panel.curves.items()):
        yield from _line(variant, curves, place, top, points)
    yield f'<text x="{LEFT + WIDTH}" y="{top + HEIGHT + 20}" text-anchor="end">{points * each} samples</text>'


def _line(variant: str, curves: Sequence[Sequence[float]], place: int, top: int, points: int) -> Iterator[str]:
    colour = COLOURS[place % len(COLOURS)]
    yield f'<text x="{LEFT + 90 * place}" y="{top - 6}" fill="{colour}">{variant}</text>'
    if curves:
        mean = _smoothed(np.mean(np.array(curves), axis=0))
        places = " L".join(f"{LEFT + WIDTH * (x + 1) / points:.1f} {_y(y, top):.1f}" for x, y in enumerate(mean))
        yield f'<path class="curve" d="M{places}" fill="none" stroke="{colour}" stroke-width="1.8"/>'


def _smoothed(values: NDArray[np.float64]) -> list[float]:
    """Return the mean of each point and its predecessors."""
    return [float(values[max(0, end - SMOOTH) : end].mean()) for end in range(1, len(values) + 1)]


def _y(accuracy: float, top: int) -> float:
    return top + HEIGHT * (HIGH - accuracy) / (HIGH - LOW)
