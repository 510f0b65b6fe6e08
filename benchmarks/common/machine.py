"""Where and when a training ran."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def today() -> str:
    """Return the date, in universal time."""
    return datetime.now(timezone.utc).date().isoformat()


def described() -> str:
    """Return the number of cores and the processor's model."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, {_processor()}"


def _processor() -> str:
    """The model and, where the name tells little, its numbers."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    name = fields.get("model name", platform.machine())
    return f"{name} (family {fields['cpu family']}, model {fields['model']})" if "cpu family" in fields else name
