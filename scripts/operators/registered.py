"""What Paddle has for GPUs: the types of each kernel, and what of those that onion needs is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from operators.ways import ONLY_ON_A_GPU, WAYS, HookIterator

FLOATING = {"float32", "float16", "bfloat16"}
"""Where a kernel ran with one of them, a GPU needs it for all: 16 bits are what mixed precision makes of it."""

REGISTERED = re.compile(r"\((?P<backend>\w+), .*, (?P<dtype>[^,]+)\)")
ON_A_GPU = {"GPU", "GPUDNN"}
ANY_TYPE = "Undefined(ALL_DTYPE)"


class Verdict(NamedTuple):
    """What there is of one operator.

    Attributes:
        name: of its kernel.
        needed: types that a GPU needs it for.
        missing: those of them that Paddle has no GPU kernel for.
        way: around what is missing; None where nothing is, or nobody has named one.
    """

    name: str
    needed: frozenset[str]
    missing: frozenset[str]
    way: HookIterator | None

    @property
    def fails(self) -> bool:
        """Whether something is missing, and no way around it is named."""
        return bool(self.missing) and (self.way is None or not self.missing <= self.way.types)


def needed_of(used: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Return the types that a GPU needs each kernel for.

    Args:
        used: kernel -> types that it ran with on the CPU.
    """
    needed = {name: set(types) for name, types in used.items()}
    for types in needed.values():
        if types & FLOATING:
            types |= FLOATING
    for name, types in ONLY_ON_A_GPU.items():
        needed.setdefault(name, set()).update(types)
    return needed


def verdicts(needed: Mapping[str, Iterable[str]], kernels: Mapping[str, Iterable[str]]) -> list[Verdict]:
    """Compare what is needed with what there is.

    Args:
        needed: kernel -> types.
        kernels: kernel -> ``(backend, layout, type)`` of all that is registered.
    """
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
    """Return the table."""
    rows = [("operator", "needed for", "on a GPU")]
    rows += [(verdict.name, ", ".join(sorted(verdict.needed)), _told(verdict)) for verdict in found]
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(f"{name:{first}}  {types:{second}}  {told}" for name, types, told in rows)


def _told(verdict: Verdict) -> str:
    if not verdict.missing:
        return "yes"
    missing = f"not for {', '.join(sorted(verdict.missing))}"
    return f"{missing}: NO WAY AROUND" if verdict.fails else f"{missing}: {verdict.way.reason}"
