"""Read from Paddle's log which kernels ran, and with which types.

At level 6 Paddle tells of every kernel that it starts, forward, backward and in optimizers, in two lines,

    ... add API kernel key: [CPU, NCHW, float32]
    ... add kernel: {"input": ...

and in one of those that Python starts by ``_legacy_C_ops``: ``kernel name: add | kernel key: (CPU, ..., float32)``.
The key's operator may have another name than its kernel, which is why both lines are read.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

LEVEL = {"GLOG_v": "6", "GLOG_logtostderr": "1"}
KEY = re.compile(r"^\w+ [\d:.]+ +(?P<thread>\d+) .*\] \w+ API kernel key: \[.*, (?P<dtype>\w+)\]")
KERNEL = re.compile(r"^\w+ [\d:.]+ +(?P<thread>\d+) .*\] (?P<name>\w+)(?: API)? kernel: \{")
LEGACY = re.compile(r"kernel name: (?P<name>\w+) \| kernel key: \(\w+, .*, (?P<dtype>\w+)\) \|")


class FailedError(Exception):
    """What was to be watched ended with an error, or told of no kernel at all."""


def recorded(module: str, root: Path) -> dict[str, set[str]]:
    """Run a module and return the types that each kernel ran with.

    Args:
        module: under scripts/.
        root: of the repository, where it is run.

    Raises:
        FailedError: it failed, or nothing was logged.
    """
    paths = os.pathsep.join(map(str, (root, root / "scripts")))
    environment = os.environ | LEVEL | {"PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-W", "ignore", "-m", module]
    with subprocess.Popen(command, cwd=root, env=environment, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stderr is not None
        last: list[str] = []
        found = kernels_in(_kept(process.stderr, last))
    if process.returncode:
        raise FailedError(f"{module} ended with status {process.returncode}:\n" + "".join(last))
    if not found:
        raise FailedError(f"Paddle {module} ran with told of no kernel; its log has another form than expected")
    return found


def kernels_in(lines: Iterable[str]) -> dict[str, set[str]]:
    """Return the types that each kernel ran with, by a log's lines."""
    found: dict[str, set[str]] = {}
    keys: dict[str, str] = {}
    for line in lines:
        if "kernel" not in line:
            continue
        if key := KEY.match(line):
            keys[key["thread"]] = key["dtype"]
        elif (kernel := KERNEL.match(line)) and kernel["thread"] in keys:
            found.setdefault(kernel["name"], set()).add(keys[kernel["thread"]])
        elif legacy := LEGACY.search(line):
            found.setdefault(legacy["name"], set()).add(legacy["dtype"])
    return found


def _kept(lines: Iterable[str], last: list[str]) -> Iterator[str]:
    """Hand lines on, and keep the last of those that are not Paddle's."""
    for line in lines:
        if not re.match(r"^[IWE]\d{4} ", line):
            last.append(line)
            del last[:-40]
        yield line
