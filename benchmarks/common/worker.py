"""The other end of sides.py: a process that prepares itself once, then does a round of work each time it is asked.

It runs in the environments of peers too, so it needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

Answer = dict[str, Any]


def serve(prepare: Callable[[Any], Callable[..., Answer]], libraries: Sequence[str] = ()) -> None:
    """Read a job, prepare it, answer rounds until nobody asks any more.

    Standard output belongs to the answers; what libraries print goes to standard error.

    Args:
        prepare: takes the job, returns what does a round: it takes a round's keywords, and returns JSON values.
        libraries: whose versions are told at the end, by the names that pip knows.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(answer: Answer) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    work = prepare(json.loads(sys.stdin.readline()))
    tell({})
    for line in sys.stdin:
        tell(work(**json.loads(line)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    tell({"peak_bytes": peak, "versions": {name: version_of(name) for name in libraries}})


def version_of(library: str) -> str:
    """Return the version of a library, or of its build for GPUs where that is there instead.

    Raises:
        PackageNotFoundError: neither is.
    """
    try:
        return version(library)
    except PackageNotFoundError:
        try:
            return f"{version(f'{library}-gpu')} for GPUs"
        except PackageNotFoundError:
            return version(library)
