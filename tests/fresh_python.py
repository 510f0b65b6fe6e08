"""Python in a process of its own, for what happens once a process: imports, and what the environment says then."""

import os
import subprocess
import sys

from tests.paths import ROOT
from tests.patience import PATIENCE

CHOSEN = ("MKL_DEBUG_CPU_TYPE", "KMP_BLOCKTIME", "OMP_NUM_THREADS")
"""Variables of the environment that onion and Paddle may have set for these tests; a fresh process has none of them."""


def python(code, modules=None, **environment):
    """Run code in a fresh process that shows every warning; return its output and what it wrote to standard error.

    ``modules`` are folders in which it looks for modules first, before those in which these tests do.
    """
    kept = {name: value for name, value in os.environ.items() if name not in CHOSEN}
    if modules is not None:
        kept["PYTHONPATH"] = os.pathsep.join([*map(str, modules), *filter(None, sys.path)])
    env = {**kept, **{name: str(value) for name, value in environment.items()}}
    done = _run(["-W", "always", "-c", code], env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def module(name, *words, **options):
    """Run a module, such as a script, in a fresh process; return the process that has ended."""
    return _run(["-m", name, *words], **options)


def _run(words, **options):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([sys.executable, *words], cwd=ROOT, text=True, timeout=PATIENCE, check=False, **streams)
