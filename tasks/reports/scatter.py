"""Numbers against numbers, as a picture: what was predicted for each true value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onion.svg import label, picture

SIDE, LEFT, TOP, EDGE = 400, 80, 30, 40


def scatter(true: np.ndarray, predicted: np.ndarray) -> str:
    """Draw a point for each row; those on the diagonal are right.

    Args:
        true: float64 [rows], at least one.
        predicted: float64 [rows].
    """
    low, high = float(min(true.min(), predicted.min())), float(max(true.max(), predicted.max()))
    span = high - low or 1.0
    x = LEFT + np.rint(SIDE * ((true - low) / span)).astype(np.int64)
    y = TOP + SIDE - np.rint(SIDE * ((predicted - low) / span)).astype(np.int64)
    parts = [*_frame(low, low + span), *_points(x, y)]
    return picture(LEFT + SIDE + EDGE, TOP + SIDE + EDGE, f"{len(true)} predictions by their labels", parts)


def _frame(low: float, high: float) -> Iterator[str]:
    bottom, right = TOP + SIDE, LEFT + SIDE
    yield f'<rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#bdbdbd"/>'
    yield f'<path d="M{LEFT} {bottom}L{right} {TOP}" stroke="#bdbdbd" stroke-dasharray="4"/>'
    for value, place in ((low, 0.0), ((low + high) / 2, 0.5), (high, 1.0)):
        yield label(f"{value:.4g}", LEFT + place * SIDE, bottom + 18, text_anchor="middle")
        yield label(f"{value:.4g}", LEFT - 8, bottom - place * SIDE + 4, text_anchor="end")
    yield label("label", LEFT + SIDE / 2, bottom + 34, text_anchor="middle", fill="#757575")
    yield label("predicted", LEFT, TOP - 10, fill="#757575")


def _points(x: np.ndarray, y: np.ndarray) -> Iterator[str]:
    """Yield points on whole pixels, each once, so that a file of any length makes a picture of some size."""
    for each in np.unique(np.stack([x, y], axis=1), axis=0).tolist():
        yield f'<circle cx="{each[0]}" cy="{each[1]}" r="2.5" fill="#7e57c2" fill-opacity="0.5"/>'
