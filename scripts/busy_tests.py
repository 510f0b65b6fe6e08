"""Run the tests again and again on a machine that is busy: a verdict that depends on time will change.

    python -m scripts.busy_tests --runs 5 --load 8 --workers 2

As many processes as asked for do nothing but take processor time beside each run. A line a run with its outcome and its
seconds, and the tests that failed; exit status 1 if one of the runs did. Words behind ``--`` are for pytest, such as
files.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from scripts.console import parser_of

SPIN = "while True: pass"


def main() -> int:
    """Do it; return the exit status."""
    asked = _asked()
    command = [sys.executable, "-m", "pytest", "-q", "--numprocesses", str(asked.workers), "--dist", "loadfile"]
    print(f"{'run':>3}  {'seconds':>7}  outcome", flush=True)
    statuses = []
    with _busy(asked.load):
        for number in range(1, asked.runs + 1):
            begun = time.monotonic()
            done = subprocess.run([*command, *asked.words], capture_output=True, text=True, check=False)
            print(f"{number:>3}  {time.monotonic() - begun:>7.0f}  {_outcome(done)}", flush=True)
            statuses.append(done.returncode)
    return 1 if any(statuses) else 0


@contextmanager
def _busy(load: int) -> Iterator[None]:
    """Keep so many processes at work that has no end."""
    others = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(load)]
    try:
        yield
    finally:
        for each in others:
            each.kill()
            each.wait()


def _outcome(done: subprocess.CompletedProcess[str]) -> str:
    """Return pytest's last line, and those of the tests that failed; all it said where it tested nothing."""
    *lines, last = done.stdout.splitlines() or [""]
    failed = [line for line in lines if re.match(r"(FAILED|ERROR) ", line)]
    said = [] if done.returncode in (0, 1) else [*lines, done.stderr]
    return "\n       ".join([last.strip("= "), *failed, *said])


def _asked() -> argparse.Namespace:
    parser = parser_of(__doc__, seed=False)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--load", type=int, default=8, help="busy processes beside them")
    parser.add_argument("--workers", type=int, default=2, help="of pytest-xdist")
    parser.add_argument("words", nargs="*", help="for pytest")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
