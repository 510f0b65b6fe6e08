"""Run a reference in its own environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from comparison.environments import python_of

SCRIPTS = Path(__file__).parent.parent
# Nothing is fetched: every file that a reference reads is named to it.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def run(reference: str, *words: str | Path) -> None:
    """Run a job of scripts/references/__main__.py; what it prints is shown only if it fails.

    Raises:
        SystemExit: it failed.
    """
    command = [str(python_of(reference)), "-m", "references", *map(str, words)]
    print(f"{reference}: {words[0]}", file=sys.stderr, flush=True)
    done = subprocess.run(  # noqa: S603 - our own words only
        command, cwd=SCRIPTS, env=os.environ | OFFLINE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        sys.stderr.buffer.write(done.stdout)
        sys.exit(f"{reference}: {words[0]} failed with status {done.returncode}")
