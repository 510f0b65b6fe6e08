"""The processes of ``onion train --processes``: none is waited for in vain, none is left."""

import os
import signal
import subprocess
import sys

import pytest

from onion.cli.processes import started, status_of
from tests.patience import PATIENCE

WAITS = "import os, signal; os.environ['PADDLE_TRAINER_ID'] == {!r} and {}; signal.pause()"


def command(code):
    return [sys.executable, "-c", code]


@pytest.mark.parametrize("failed", ["0", "1"])
def test_the_others_are_ended_some_time_after_one_has_failed(failed, tmp_path):
    with started(2, command(WAITS.format(failed, "os._exit(3)")), tmp_path) as ranks:
        assert status_of(ranks, patience=0.1) == 3
    assert [each.returncode for each in ranks] == ([3, -9] if failed == "0" else [-9, 3])


def test_a_killed_process_is_told_as_a_shell_does(tmp_path):
    with started(2, command(WAITS.format("1", "os.kill(os.getpid(), signal.SIGSEGV)")), tmp_path) as ranks:
        assert status_of(ranks, patience=0.1) == 128 + signal.SIGSEGV


def test_an_error_leaves_no_process(tmp_path):
    with pytest.raises(KeyboardInterrupt), started(2, command("import signal; signal.pause()"), tmp_path) as ranks:
        raise KeyboardInterrupt
    assert [each.returncode for each in ranks] == [-9, -9]


def test_a_process_ends_as_after_sigterm_where_its_launcher_is_killed(tmp_path):
    """Its handler writes to the pipe that this test reads to its end: nobody holds it then."""
    rank = (
        "import signal\nfrom onion.host.launch import end_with_launcher\n"
        "def leave(*_): print('left', flush=True); raise SystemExit\n"
        "signal.signal(signal.SIGTERM, leave)\nend_with_launcher()\nprint('there', flush=True)\n"
        "while True: signal.pause()"
    )
    code = (
        "import pathlib, sys\nfrom onion.cli.processes import started, status_of\n"
        f"with started(1, [sys.executable, '-c', {rank!r}], pathlib.Path({str(tmp_path)!r})) as ranks: status_of(ranks)"
    )
    launcher = subprocess.Popen(command(code), stdout=subprocess.PIPE, text=True, env={**os.environ})
    assert launcher.stdout.readline() == "there\n"
    launcher.kill()
    out, _ = launcher.communicate(timeout=PATIENCE)
    assert out == "left\n"
