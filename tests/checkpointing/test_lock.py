"""A folder has one run at a time: who is refused, what is told, and what a dead owner leaves."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from onion.checkpointing import lock
from onion.checkpointing.lock import LOCK, exclusive_lock
from onion.errors import CheckpointError
from tests.patience import PATIENCE

RUN, OTHER = object(), object()

HOLD = """
import sys
import threading
from contextlib import suppress
from pathlib import Path
from onion.checkpointing.lock import exclusive_lock
with exclusive_lock(Path(sys.argv[1]), None):
    print("held", flush=True)
    sys.stdin.read()
"""

LEAVE_A_CHILD = """
import os, signal, sys
from pathlib import Path
from onion.checkpointing.lock import exclusive_lock
with exclusive_lock(Path(sys.argv[1]), None):
    if os.fork():
        signal.pause()
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
"""
SHARE_WITH_A_CHILD = """
import os, sys
from pathlib import Path
from onion.errors import CheckpointError
from onion.checkpointing.lock import exclusive_lock
folder = Path(sys.argv[1])
with exclusive_lock(folder, None):
    if child := os.fork():
        print("the child has left with", os.waitpid(child, 0)[1], flush=True)
        sys.stdin.read()
    else:
        try:
            with exclusive_lock(folder, None):
                print("the child got in", flush=True)
        except CheckpointError as error:
            print(error, flush=True)
"""


def started(script, folder):
    return subprocess.Popen(
        [sys.executable, "-c", script, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def held_elsewhere(folder):
    """Start a process that holds a folder until its standard input is closed."""
    process = started(HOLD, folder)
    assert process.stdout.readline() == "held\n"
    return process


def test_the_lock_tells_its_owner_and_goes_with_it(tmp_path):
    with exclusive_lock(tmp_path, RUN):
        owner = json.loads((tmp_path / LOCK).read_text())
        assert (owner["pid"], owner["host"]) == (os.getpid(), socket.gethostname())
        assert set(owner) == {"pid", "host", "since", "command"}
    assert list(tmp_path.iterdir()) == []


def test_another_run_of_this_process_is_refused_and_the_same_run_is_not(tmp_path):
    with exclusive_lock(tmp_path, RUN):
        with (
            pytest.raises(CheckpointError, match="is in use by another run of this process"),
            exclusive_lock(tmp_path, OTHER),
        ):
            pass
        with exclusive_lock(tmp_path / ".", RUN):
            assert (tmp_path / LOCK).exists()
        assert (tmp_path / LOCK).exists()
    with exclusive_lock(tmp_path, OTHER):
        pass


def test_a_folder_of_another_process_is_refused_with_its_owner_until_that_leaves(tmp_path):
    with held_elsewhere(tmp_path) as process:
        said = rf"is in use by process {process.pid} on {socket.gethostname()}, since .* \(-c .*\); wait for it"
        for _ in range(2):
            with pytest.raises(CheckpointError, match=said), exclusive_lock(tmp_path, RUN):
                pass
        process.stdin.close()
        process.wait()
    with exclusive_lock(tmp_path, RUN):
        pass


def test_what_a_killed_process_leaves_is_taken_over_and_that_is_logged(tmp_path, caplog):
    with held_elsewhere(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / LOCK).exists()
    with caplog.at_level("DEBUG", "onion"), exclusive_lock(tmp_path, RUN):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert caplog.messages[0].startswith(f"took {tmp_path} over from process {process.pid} on ")


@pytest.mark.parametrize("rest", [b"", b"{", b"[1]", b"\xff", b'{"pid": "x"}', b'{"pid": 1, "host": "elsewhere"}'])
def test_a_lock_that_nobody_holds_is_free_whatever_it_says(rest, tmp_path):
    (tmp_path / LOCK).write_bytes(rest)
    with exclusive_lock(tmp_path, RUN):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_an_error_inside_lets_go(tmp_path):
    with pytest.raises(ValueError, match="mine"), exclusive_lock(tmp_path, RUN):
        raise ValueError("mine")
    with exclusive_lock(tmp_path, OTHER):
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
    with exclusive_lock(tmp_path, RUN):
        assert len(calls) == 2
        assert (tmp_path / LOCK).exists()


# -- forked children --------------------------------------------------------------------------------------------------


def test_a_child_that_outlives_its_killed_run_keeps_nobody_out(tmp_path):
    with started(LEAVE_A_CHILD, tmp_path) as process:
        child = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        with exclusive_lock(tmp_path, RUN):
            os.kill(child, 0)  # it is there


def test_a_child_is_kept_out_and_leaves_the_lock_to_its_parent(tmp_path):
    with started(SHARE_WITH_A_CHILD, tmp_path) as process:
        assert f"is in use by process {process.pid} on " in process.stdout.readline()
        assert process.stdout.readline() == "the child has left with 0\n"
        with (
            pytest.raises(CheckpointError, match=f"in use by process {process.pid} on "),
            exclusive_lock(tmp_path, RUN),
        ):
            pass
        process.stdin.close()
        assert process.wait() == 0
    assert list(tmp_path.iterdir()) == []


def test_a_lock_whose_owner_is_gone_is_held_by_a_child_of_it_and_the_error_says_so(tmp_path):
    import fcntl

    sign(tmp_path, owner := gone())
    said = rf"process {owner} on .*, which is gone, has left a child that holds it; end that \(it has .*\.lock open\)"
    with (tmp_path / LOCK).open() as left:
        fcntl.flock(left, fcntl.LOCK_EX)  # as a child does that was forked by other means than Python's
        with pytest.raises(CheckpointError, match=said), exclusive_lock(tmp_path, RUN):
            pass
    with exclusive_lock(tmp_path, RUN):
        pass


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
    with (
        pytest.raises(CheckpointError, match=rf"process {os.getppid()} on .* \(train.py\)"),
        exclusive_lock(tmp_path, RUN),
    ):
        pass


def test_without_locks_a_dead_owner_of_this_machine_keeps_nobody_out(without_locks, tmp_path):
    sign(tmp_path, gone())
    with exclusive_lock(tmp_path, RUN):
        pass


def test_without_locks_an_owner_elsewhere_may_live_so_its_lock_is_to_be_deleted_by_hand(without_locks, tmp_path):
    sign(tmp_path, 1, "elsewhere")
    with (
        pytest.raises(CheckpointError, match=r"on elsewhere.*If it is gone, delete .*\.lock"),
        exclusive_lock(tmp_path, RUN),
    ):
        pass


def test_a_folder_that_cannot_be_written_is_an_error_that_says_so(tmp_path):
    with (
        pytest.raises(CheckpointError, match=r"cannot write .*\.lock: No such file"),
        exclusive_lock(tmp_path / "no", RUN),
    ):
        pass
    assert Path(tmp_path / "no").exists() is False


# -- what lies in the lock's place ------------------------------------------------------------------------------------


def linked(lock, precious):
    lock.symlink_to(precious)


def linked_hard(lock, precious):
    lock.hardlink_to(precious)


def piped(lock, precious):
    os.mkfifo(lock)


@pytest.mark.parametrize("place", [linked, linked_hard, piped])
def test_what_is_no_file_of_its_own_is_refused_and_not_written_to(place, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("thesis")
    place(tmp_path / LOCK, precious)
    told = r"cannot write .*\.lock: what stands there is a link, a pipe or a device, and no lock of onion; remove it"
    with pytest.raises(CheckpointError, match=told), exclusive_lock(tmp_path, RUN):
        pass
    assert precious.read_text() == "thesis"
    assert sorted(path.name for path in tmp_path.iterdir()) == [LOCK, "precious"]


def test_a_link_to_nothing_makes_nothing(tmp_path):
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="what stands there is a link"), exclusive_lock(tmp_path, RUN):
        pass
    assert not (tmp_path / "elsewhere").exists()


# -- a folder that is deleted under its run ---------------------------------------------------------------------------


def made_anew(folder):
    shutil.rmtree(folder)
    folder.mkdir()


def test_the_lock_of_another_run_in_a_folder_made_anew_is_left_to_it(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with exclusive_lock(out, RUN):
        made_anew(out)
        process = held_elsewhere(out)
        with pytest.raises(CheckpointError, match=f"in use by process {process.pid} on "), exclusive_lock(out, RUN):
            pass
    with process:
        assert json.loads((out / LOCK).read_text())["pid"] == process.pid
        with pytest.raises(CheckpointError, match=f"in use by process {process.pid} on "), exclusive_lock(out, OTHER):
            pass
        process.stdin.close()


def test_a_folder_made_anew_is_taken_again_by_its_run(tmp_path, caplog):
    out = tmp_path / "out"
    out.mkdir()
    with exclusive_lock(out, RUN):
        made_anew(out)
        with exclusive_lock(out, RUN):
            assert json.loads((out / LOCK).read_text())["pid"] == os.getpid()
        assert caplog.messages == [f"{out / LOCK} was removed while the run was at work there, and is made again"]
        with started(HOLD, out) as process:
            assert process.stdout.read() == ""  # it is kept out
    assert list(out.iterdir()) == []


# -- interrupts -------------------------------------------------------------------------------------------------------


def is_locked(folder):
    import fcntl

    with (folder / LOCK).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_the_folder_is_held_until_the_thread_of_a_run_that_has_left_is_done(tmp_path, monkeypatch):
    """And the next run waits for that."""
    inside, go, order = threading.Event(), threading.Event(), []

    def write():
        with exclusive_lock(tmp_path, RUN, lingers=True):
            inside.set()
            go.wait()
            order.append("written")

    thread, join = threading.Thread(target=write), threading.Thread.join

    def joined(waited_for, *limit):
        go.set()
        join(waited_for, *limit)

    with exclusive_lock(tmp_path, RUN):
        thread.start()
        inside.wait()
        with pytest.raises(CheckpointError, match="another run of this process"), exclusive_lock(tmp_path, OTHER):
            pass
    assert is_locked(tmp_path)
    monkeypatch.setattr(threading.Thread, "join", joined)
    with exclusive_lock(tmp_path, OTHER):
        order.append("next")
        assert is_locked(tmp_path)
    assert order == ["written", "next"]
    assert list(tmp_path.iterdir()) == []


def test_a_thread_that_comes_too_late_finds_the_folder_the_next_runs(tmp_path):
    told = []

    def write():
        try:
            with exclusive_lock(tmp_path, RUN, lingers=True):
                told.append("inside")
        except CheckpointError as error:
            told.append(str(error))

    with exclusive_lock(tmp_path, OTHER):
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert len(told) == 1
    assert "is in use by another run of this process" in told[0]


def test_an_interrupt_while_the_guard_is_held_stops_no_thread(tmp_path):
    """Before Python 3.11 an interrupt may come between the body of a with block and its end."""
    done = []

    def write():
        with exclusive_lock(tmp_path, RUN, lingers=True):
            done.append(True)

    lock._guard.acquire()
    with exclusive_lock(tmp_path, RUN):
        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        thread.join(PATIENCE)
    assert done == [True]


def interrupted(folder, at):
    """Hold a folder beside a thread of the run, with an interrupt before the at-th line of the lock's code.

    Return how many lines the main thread came by.
    """
    count = 0

    def enter(frame, event, argument):
        return each if frame.f_code.co_filename == lock.__file__ else None

    def each(frame, event, argument):
        nonlocal count
        count += event == "line"
        if count == at and event == "line":
            raise KeyboardInterrupt
        return each

    def write():
        with exclusive_lock(folder, RUN, lingers=True):
            pass

    thread, before = threading.Thread(target=write, daemon=True), sys.gettrace()
    with suppress(KeyboardInterrupt):
        sys.settrace(enter)
        try:
            with exclusive_lock(folder, RUN):
                thread.start()
        finally:
            sys.settrace(before)
    if thread.ident is not None:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return count


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file is closed when it is forgotten
def test_an_interrupt_before_any_line_leaves_the_folder_free_and_no_thread_waiting(tmp_path):
    lines = interrupted(tmp_path, 0)
    assert lines > 50
    for at in range(1, lines + 1):
        interrupted(tmp_path, at)
        with exclusive_lock(tmp_path, OTHER):
            pass
        assert list(tmp_path.iterdir()) == [], at
