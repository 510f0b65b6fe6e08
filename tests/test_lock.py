"""A folder has one run at a time: who is refused, what is told, and what a dead owner leaves."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from onion.errors import CheckpointError
from onion.lock import LOCK, alone_in

pytestmark = pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX only")
RUN, OTHER = object(), object()

HOLD = """
import sys
from pathlib import Path
from onion.lock import alone_in
with alone_in(Path(sys.argv[1]), None):
    print("held", flush=True)
    sys.stdin.read()
"""


def held_elsewhere(folder):
    """Start a process that holds a folder until its standard input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_the_lock_tells_its_owner_and_goes_with_it(tmp_path):
    with alone_in(tmp_path, RUN):
        owner = json.loads((tmp_path / LOCK).read_text())
        assert (owner["pid"], owner["host"]) == (os.getpid(), socket.gethostname())
        assert set(owner) == {"pid", "host", "since", "command"}
    assert list(tmp_path.iterdir()) == []


def test_another_run_of_this_process_is_refused_and_the_same_run_is_not(tmp_path):
    with alone_in(tmp_path, RUN):
        with (
            pytest.raises(CheckpointError, match="is in use by another run of this process"),
            alone_in(tmp_path, OTHER),
        ):
            pass
        with alone_in(tmp_path / ".", RUN):
            assert (tmp_path / LOCK).exists()
        assert (tmp_path / LOCK).exists()
    with alone_in(tmp_path, OTHER):
        pass


def test_a_folder_of_another_process_is_refused_with_its_owner_until_that_leaves(tmp_path):
    with held_elsewhere(tmp_path) as process:
        said = rf"is in use by process {process.pid} on {socket.gethostname()}, since .* \(-c .*\); wait for it"
        for _ in range(2):
            with pytest.raises(CheckpointError, match=said), alone_in(tmp_path, RUN):
                pass
        process.stdin.close()
        process.wait()
    with alone_in(tmp_path, RUN):
        pass


def test_what_a_killed_process_leaves_is_taken_over_and_that_is_logged(tmp_path, caplog):
    with held_elsewhere(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / LOCK).exists()
    with caplog.at_level("DEBUG", "onion"), alone_in(tmp_path, RUN):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert caplog.messages[0].startswith(f"took {tmp_path} over from process {process.pid} on ")


@pytest.mark.parametrize("rest", [b"", b"{", b"[1]", b"\xff", b'{"pid": "x"}', b'{"pid": 1, "host": "elsewhere"}'])
def test_a_lock_that_nobody_holds_is_free_whatever_it_says(rest, tmp_path):
    (tmp_path / LOCK).write_bytes(rest)
    with alone_in(tmp_path, RUN):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_an_error_inside_lets_go(tmp_path):
    with pytest.raises(ValueError, match="mine"), alone_in(tmp_path, RUN):
        raise ValueError("mine")
    with alone_in(tmp_path, OTHER):
        pass


def test_a_lock_removed_between_opening_and_locking_is_not_taken_for_ours(tmp_path, monkeypatch):
    import fcntl

    calls, flock = [], fcntl.flock

    def late(handle, how):
        calls.append(handle)
        if len(calls) == 1:
            (tmp_path / LOCK).unlink()  # as its owner does when it leaves
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with alone_in(tmp_path, RUN):
        assert len(calls) == 2
        assert (tmp_path / LOCK).exists()


# -- file systems without locks ---------------------------------------------------------------------------------------


@pytest.fixture
def without_locks(monkeypatch):
    import fcntl

    def refuse(handle, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)


def sign(folder, pid, host=None):
    owner = {"pid": pid, "host": host or socket.gethostname(), "since": "noon", "command": "train.py"}
    (folder / LOCK).write_text(json.dumps(owner))


def gone():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_without_locks_the_name_of_a_living_owner_keeps_others_out(without_locks, tmp_path):
    sign(tmp_path, os.getppid())
    with pytest.raises(CheckpointError, match=rf"process {os.getppid()} on .* \(train.py\)"), alone_in(tmp_path, RUN):
        pass


def test_without_locks_a_dead_owner_of_this_machine_keeps_nobody_out(without_locks, tmp_path):
    sign(tmp_path, gone())
    with alone_in(tmp_path, RUN):
        pass


def test_without_locks_an_owner_elsewhere_may_live_so_its_lock_is_to_be_deleted_by_hand(without_locks, tmp_path):
    sign(tmp_path, 1, "elsewhere")
    with pytest.raises(CheckpointError, match=r"on elsewhere.*If it is gone, delete .*\.lock"), alone_in(tmp_path, RUN):
        pass


def test_a_folder_that_cannot_be_written_is_an_error_that_says_so(tmp_path):
    with pytest.raises(CheckpointError, match=r"cannot write .*\.lock: No such file"), alone_in(tmp_path / "no", RUN):
        pass
    assert Path(tmp_path / "no").exists() is False
