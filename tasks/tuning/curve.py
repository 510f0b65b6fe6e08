"""Curves over a logarithmic axis, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import attrs

from onion.svg import label, picture

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 360, 60, 20, 50


@attrs.frozen
class Curve:
    """A curve.

    Attributes:
        name: what it shows.
        values: one for each place on the axis; those that are not finite are left out.
        colour: as SVG writes it.
    """

    name: str
    values: Sequence[float]
    colour: str


def curves(places: Sequence[float], shown: Sequence[Curve], axis: str, mark: float | None = None) -> str:
    """Draw curves over the same places.

    Args:
        places: positive and rising, at least two.
        shown: the curves. The last one gives the range of the values, as far as its lowest one: a divergence after it
            would leave no room for the fall, and the others may be noisy.
        axis: what the places are.
        mark: a place to mark. Default: none.
    """
    frame = _Frame(math.log10(places[0]), math.log10(places[-1]), *_range(shown[-1].values))
    parts = [*_axes(frame, axis)]
    for number, curve in enumerate(shown):
        parts.append(f'<polyline fill="none" stroke="{curve.colour}" points="{_points(frame, places, curve)}"/>')
        parts.append(label(curve.name, LEFT + 10 + 120 * number, 14, fill=curve.colour))
    if mark is not None:
        x = frame.x(mark)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#d32f2f"/>')
        parts.append(label(f"{mark:.2g}", x + 4, TOP + 12, fill="#d32f2f"))
    return picture(WIDTH, HEIGHT, f"{', '.join(curve.name for curve in shown)} by {axis}", parts)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Return the lowest value and the highest before it, with room above."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low = min(finite)
    high = max(finite[: finite.index(low) + 1])
    return low, high + ((high - low) / 2 or 1.0)


@attrs.frozen
class _Frame:
    """What part of the plane is drawn: powers of ten from left to right, values from bottom to top."""

    left: float
    right: float
    low: float
    high: float

    def x(self, place: float) -> float:
        return LEFT + (math.log10(place) - self.left) / (self.right - self.left) * (WIDTH - LEFT - 20)

    def y(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)


def _points(frame: _Frame, places: Sequence[float], curve: Curve) -> str:
    return " ".join(
        f"{frame.x(place):.1f},{frame.y(value):.1f}"
        for place, value in zip(places, curve.values, strict=True)
        if math.isfinite(value)
    )


def _axes(frame: _Frame, axis: str) -> Iterator[str]:
    bottom = HEIGHT - BOTTOM
    yield f'<path d="M{LEFT} {TOP}V{bottom}H{WIDTH - 20}" fill="none" stroke="#424242"/>'
    for power in range(math.ceil(frame.left), math.floor(frame.right) + 1):
        x = frame.x(10.0**power)
        yield f'<line x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 5}" stroke="#424242"/>'
        yield label(f"1e{power}", x, bottom + 18, text_anchor="middle")
    for value in (frame.low, frame.high):
        yield label(f"{value:.3g}", LEFT - 6, frame.y(value) + 4, text_anchor="end")
    yield label(axis, (LEFT + WIDTH) / 2, HEIGHT - 10, text_anchor="middle")
