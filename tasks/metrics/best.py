"""Which figure of a metric says what is best, and whether more of it is better or less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onion.errors import DataError
from onion.messages import shown
from onion.monitoring.best import Mode

PREFIX = "dev."
"""Of figures as a training reports them."""


def best_figure(metric: Any, wanted: str) -> tuple[str, Mode]:
    """Return the name of a figure without its prefix, and what is better of it.

    Args:
        metric: an Evaluator's, that has seen nothing. ``less_is_better``, if it has that, is the set of its figures of
            which less is better.
        wanted: the name, as the metric tells it or as a training does: ``f1_macro``, ``dev.f1_macro``.

    Raises:
        DataError: the metric has no such figure.
    """
    name = wanted.removeprefix(PREFIX)
    known = _names(metric)
    if known and name not in known:
        raise DataError(f"best: the test has no figure {shown(wanted)}; it has {', '.join(known)}")
    return name, "min" if name in getattr(metric, "less_is_better", ()) else "max"


def _names(metric: Any) -> Sequence[str]:
    """Return the figures that there will be; nothing where a metric of the user's cannot tell yet."""
    try:
        return getattr(metric, "names", None) or list(metric.result())
    except Exception:
        return ()
