"""Lines of a page: tables, means, and where it all ran."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [columns, ("---",) * len(columns), *lines])


def mean_and_spread(values: Sequence[float]) -> str:
    """Return the mean, and the sample standard deviation if there are two or more; one digit behind the point."""
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


def where_and_when(results: Sequence[Mapping[str, Any]]) -> str:
    """Tell on which machines results were made, when and with which versions; nothing of no results.

    Args:
        results: with ``machine``, ``date`` and ``versions`` (name -> version).
    """
    if not results:
        return ""
    machines = "; ".join(sorted({result["machine"] for result in results}))
    versions = sorted({f"{name} {version}" for result in results for name, version in result["versions"].items()})
    dates = sorted({result["date"] for result in results})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"Machine: {machines}. Run {when} with {', '.join(versions)}."
