"""The default number of threads: one per processor that this process may use, with an upper limit."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from onion.host import launch

MAX_THREADS = 8
"""Only products are divided among all threads, and those of an encoder take a millisecond or less: with every further
thread there is less to divide, and as much to start and to wait for."""

GROUPS = Path("/proc/self/cgroup")
LIMITS = Path("/sys/fs/cgroup")


def default_threads() -> int:
    """Return how many threads to compute on: one per available processor, within the quota and `MAX_THREADS`.

    Processes of this machine that a launcher has started share its processors.

    Hyperthreads count as processors, because virtual machines often do not tell them apart; MKL takes no more threads
    for a product than it sees cores.
    """
    share = math.ceil(min(processors(), quota())) // launch.local_size()
    return max(1, min(MAX_THREADS, share))


def processors() -> int:
    """Count the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS; a container or taskset may allow fewer than there are
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def quota(groups: Path = GROUPS, limits: Path = LIMITS) -> float:
    """Return how many processors' time the control groups of this process allow; infinity: no limit.

    That is what ``docker run --cpus 2`` sets, and Kubernetes' limits: all processors are there, but not all the time.
    ``groups`` is Linux's list of the groups of a process (version 1 or 2; need not exist), ``limits`` the folder of
    limits.
    """
    return min((_limit(folder) for folder in _folders(groups, limits)), default=math.inf)


def _folders(groups: Path, limits: Path) -> Iterator[Path]:
    """Give the folders of the groups and of those around them, as far as a container shows them."""
    try:
        lines = groups.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "cpu" in controllers.split(","):
            top = limits / controllers if controllers else limits
            inner = top / path.lstrip("/")
            yield from (folder for folder in (inner, *inner.parents) if folder.is_relative_to(top))


def _limit(folder: Path) -> float:
    """Read the limit of a group, by version 2 or 1; infinity: it has none."""
    try:
        if (folder / "cpu.max").exists():
            allowed, period = (folder / "cpu.max").read_text().split()
        else:
            allowed, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(allowed) / int(period) if int(allowed) > 0 else math.inf
    except (OSError, ValueError):  # not there; "max"
        return math.inf
