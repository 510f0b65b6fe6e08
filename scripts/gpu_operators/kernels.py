"""Which kernels ran and with which types, by Paddle's log; and what of that Paddle has no kernel for on a GPU.

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
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from scripts.console import columns


class Mode(NamedTuple):
    """A way around: the types for which no kernel is needed, and why."""

    types: frozenset[str]
    reason: str


BFLOAT16 = frozenset({"bfloat16"})

IN_32_BITS = "MixedPrecision has autocast compute it in float32 (onion/items/mixed_precision.py)"
AT_O1 = "MixedPrecision leaves the parameters in float32 at level O1; at O2 take AdamW, as docs/gpu.md says"

WAYS = {
    "cross_entropy_with_softmax": Mode(BFLOAT16, IN_32_BITS),
    "cross_entropy_with_softmax_grad": Mode(BFLOAT16, IN_32_BITS),
    "mean_all": Mode(BFLOAT16, IN_32_BITS),
    "mean_all_grad": Mode(BFLOAT16, IN_32_BITS),
    "momentum": Mode(BFLOAT16, AT_O1),
}
"""Kernel -> way; of Paddle 2.6.2, where they are missing."""

ONLY_ON_A_GPU: dict[str, set[str]] = {
    "flash_attn_unpadded": {"float16", "bfloat16"},
    "flash_attn_unpadded_grad": {"float16", "bfloat16"},
    "cast": {"float32", "float16", "bfloat16"},
}
"""Kernel -> types of what a GPU runs and the CPU cannot: attention in 16 bits (models/fused/flash.py), and autocast."""

LEVEL = {"GLOG_v": "6", "GLOG_logtostderr": "1"}
KEY = re.compile(r"^\w+ [\d:.]+ +(?P<thread>\d+) .*\] \w+ API kernel key: \[.*, (?P<dtype>\w+)\]")
KERNEL = re.compile(r"^\w+ [\d:.]+ +(?P<thread>\d+) .*\] (?P<name>\w+)(?: API)? kernel: \{")
LEGACY = re.compile(r"kernel name: (?P<name>\w+) \| kernel key: \(\w+, .*, (?P<dtype>\w+)\) \|")


class FailedError(Exception):
    """What was to be watched ended with an error, or told of no kernel at all."""


def recorded(module: str, root: Path) -> dict[str, set[str]]:
    """Run a module in the repository's root and return the types that each kernel ran with.

    Raises:
        FailedError: it failed, or nothing was logged.
    """
    environment = os.environ | LEVEL | {"PYTHONPATH": str(root), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-W", "ignore", "-m", module]
    with subprocess.Popen(command, cwd=root, env=environment, stderr=subprocess.PIPE, text=True) as process:
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


FLOATING = {"float32", "float16", "bfloat16"}
"""Where a kernel ran with one of them, a GPU needs it for all: 16 bits are what mixed precision makes of it."""

REGISTERED = re.compile(r"\((?P<backend>\w+), .*, (?P<dtype>[^,]+)\)")
ON_A_GPU = {"GPU", "GPUDNN"}
ANY_TYPE = "Undefined(ALL_DTYPE)"


class Verdict(NamedTuple):
    """The types that a GPU needs a kernel for, those of them that Paddle lacks, and the way around, if one is named."""

    name: str
    needed: frozenset[str]
    missing: frozenset[str]
    way: Mode | None

    @property
    def fails(self) -> bool:
        """Whether something is missing, and no way around it is named."""
        return bool(self.missing) and (self.way is None or not self.missing <= self.way.types)


def needed_of(used: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Return the types that a GPU needs each kernel for, by those that it ran with on the CPU."""
    needed = {name: set(types) for name, types in used.items()}
    for types in needed.values():
        if types & FLOATING:
            types |= FLOATING
    for name, types in ONLY_ON_A_GPU.items():
        needed.setdefault(name, set()).update(types)
    return needed


def verdicts(needed: Mapping[str, Iterable[str]], kernels: Mapping[str, Iterable[str]]) -> list[Verdict]:
    """Compare the types that are needed with the kernels, ``(backend, layout, type)``, that are registered."""
    return [_verdict(name, frozenset(needed[name]), kernels.get(name, ())) for name in sorted(needed)]


def _verdict(name: str, needed: frozenset[str], kernels: Iterable[str]) -> Verdict:
    found = [match for kernel in kernels if (match := REGISTERED.fullmatch(kernel))]
    there = {match["dtype"] for match in found if match["backend"] in ON_A_GPU}
    missing = frozenset() if ANY_TYPE in there else needed - there
    return Verdict(name, needed, missing, WAYS.get(name) if missing else None)


def idle_ways(found: Iterable[Verdict]) -> list[str]:
    """Return the kernels of which a way around is named that nothing has taken: the table is to be true."""
    taken = {verdict.name for verdict in found if verdict.way}
    return sorted(WAYS.keys() - taken)


def rendered(found: Iterable[Verdict]) -> str:
    rows = [(verdict.name, ", ".join(sorted(verdict.needed)), _told(verdict)) for verdict in found]
    return columns([("operator", "needed for", "on a GPU"), *rows])


def _told(verdict: Verdict) -> str:
    if not verdict.missing:
        return "yes"
    reason = verdict.way.reason if verdict.way and not verdict.fails else "NO WAY AROUND"
    return f"not for {', '.join(sorted(verdict.missing))}: {reason}"
