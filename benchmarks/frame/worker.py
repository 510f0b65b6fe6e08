"""A process that prepares itself once, then does a round of work each time it is asked: the other end of processes.py.

    python -m benchmarks.frame.worker MODULE[:PREPARE]

``PREPARE`` (default ``prepare``) takes the job, the first line of standard input, and returns what does a round: a
function that takes the keywords of a further line and returns JSON values. ``MODULE.LIBRARIES`` are those whose
versions are reported at the end. It runs in the environments of peers too, so it needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

Answer = dict[str, Any]


def serve(target: str) -> None:
    """Answer rounds until standard input ends; what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(answer: Answer) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    name, _, prepare = target.partition(":")
    module = import_module(name)
    work = getattr(module, prepare or "prepare")(json.loads(sys.stdin.readline()))
    tell({})
    for line in sys.stdin:
        tell(work(**json.loads(line)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    tell({"peak_bytes": peak, "versions": {name: version_of(name) for name in getattr(module, "LIBRARIES", ())}})


def version_of(library: str) -> str:
    """Return the version of a library, or of its build for GPUs where that is installed instead.

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


if __name__ == "__main__":
    serve(sys.argv[1])
