"""Markdown: tables, means, and where and when something ran."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

MISSING = "not run yet"
CPUINFO = Path("/proc/cpuinfo")
FLAGS = {"avx512f": "AVX-512", "avx512_vnni": "VNNI", "avx_vnni": "VNNI", "amx_int8": "AMX"}
"""What decides about speed where processors differ: of float32, and of 8 bits."""


def table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [columns, ("---",) * len(columns), *lines])


def mean_and_spread(values: Sequence[float]) -> str:
    """Return the mean, and the sample standard deviation if there are two or more; one digit after the point."""
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the lower and the upper one; of a single value, that one."""
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest of the values that at least so many percent of them do not exceed (the nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -int(-len(ordered) * share // 100) - 1)]


def where_and_when(results: Sequence[Mapping[str, Any]]) -> str:
    """Return on which machines results were made, when and with which versions; nothing without results."""
    if not results:
        return ""
    machines = "; ".join(sorted({result["machine"] for result in results}))
    versions = sorted({f"{name} {version}" for result in results for name, version in result["versions"].items()})
    dates = sorted({result["date"] for result in results})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"Machine: {machines}. Run {when} with {', '.join(versions)}."


def today() -> str:
    return datetime.now(timezone.utc).date().isoformat()


def machine() -> str:
    """Return the number of cores and the processor's model; where /proc tells them, its numbers and which of FLAGS."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        lines = CPUINFO.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return f"{cores} cores, {platform.processor() or platform.machine()}"
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    name = fields.get("model name", platform.machine())
    if "cpu family" not in fields:
        return f"{cores} cores, {name}"
    flags = fields.get("flags", "").split()
    has = dict.fromkeys(word for flag, word in FLAGS.items() if flag in flags)
    told = ", ".join([f"family {fields['cpu family']}", f"model {fields['model']}", *has])
    return f"{cores} cores, {name} ({told})"
