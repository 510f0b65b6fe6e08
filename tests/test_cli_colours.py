"""Colours are for terminals: a real one, and a pipe."""

import os
import pty
import subprocess
import sys

import pytest

from tests.patience import PATIENCE

pytestmark = pytest.mark.slow
WRONG = ["-c", "import sys, onion.cli; sys.exit(onion.cli.main())", "draw", "--run", "none"]
UNKNOWN = [*WRONG[:2], "sing"]
RED = "\x1b[1;31m"


def written(words, on_terminal, **environment):
    """Run a command; return what it wrote to standard error, which is a terminal or a pipe."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    env = kept | {"TERM": "xterm", **environment}
    ours, theirs = pty.openpty() if on_terminal else os.pipe()
    try:
        options = {"stdout": subprocess.DEVNULL, "stderr": theirs, "env": env, "timeout": PATIENCE, "check": False}
        done = subprocess.run([sys.executable, *words], **options)
        assert done.returncode == 2
        return os.read(ours, 10_000).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(
    ("words", "on_terminal", "environment", "red"),
    [
        (WRONG, True, {}, True),
        (WRONG, False, {}, False),
        (WRONG, True, {"NO_COLOR": "1"}, False),
        (WRONG, True, {"TERM": "dumb"}, False),
        (WRONG, False, {"FORCE_COLOR": "1"}, True),
        (UNKNOWN, True, {}, True),
        (UNKNOWN, False, {}, False),
    ],
)
def test_errors_are_red_on_terminals_only(words, on_terminal, environment, red):
    error = written(words, on_terminal, **environment)
    assert error.startswith(f"{RED}onion:\x1b[0m " if red else "onion: ")
    assert error.count("\x1b") == (2 if red else 0)
