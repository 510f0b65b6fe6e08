"""A folder has one run at a time: who is refused with which message, and what a dead owner leaves."""

import errno
import fcntl
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

BEGIN = """
import os, signal, sys
from pathlib import Path
from onion.errors import CheckpointError
from onion.checkpointing.lock import exclusive_lock
folder = Path(sys.argv[1])
"""
HOLD = """
with exclusive_lock(folder, None):
    print("held", flush=True)
    sys.stdin.read()
"""
LEAVE_A_CHILD = """
with exclusive_lock(folder, None):
    if os.fork():
        signal.pause()
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
"""
SHARE_WITH_A_CHILD = """
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
    command = [sys.executable, "-c", BEGIN + script, folder]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def enter(folder, run=RUN):
    with exclusive_lock(folder, run):
        pass


def refused(folder, told, run=RUN):
    with pytest.raises(CheckpointError, match=told):
        enter(folder, run)


def owner_in(folder):
    return json.loads((folder / LOCK).read_text())


def held_elsewhere(folder):
    """Start a process that holds a folder until its standard input is closed."""
    process = started(HOLD, folder)
    assert process.stdout.readline() == "held\n"
    return process


def test_the_lock_tells_its_owner_and_goes_with_it(tmp_path):
    with exclusive_lock(tmp_path, RUN):
        owner = owner_in(tmp_path)
        assert (owner["pid"], owner["host"]) == (os.getpid(), socket.gethostname())
        assert set(owner) == {"pid", "host", "since", "command"}
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyError), exclusive_lock(tmp_path, RUN):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_another_run_of_this_process_is_refused_and_the_same_run_is_not(tmp_path):
    with exclusive_lock(tmp_path, RUN):
        refused(tmp_path, "is in use by another run of this process", OTHER)
        with exclusive_lock(tmp_path / ".", RUN):
            assert (tmp_path / LOCK).exists()
        assert (tmp_path / LOCK).exists()
    enter(tmp_path, OTHER)


def test_a_folder_of_another_process_is_refused_with_its_owner_until_that_leaves(tmp_path):
    with held_elsewhere(tmp_path) as process:
        said = rf"is in use by process {process.pid} on {socket.gethostname()}, since .* \(-c .*\); wait for it"
        for _ in range(2):
            refused(tmp_path, said)
        process.stdin.close()
        process.wait()
    enter(tmp_path)


def test_what_a_killed_process_leaves_is_taken_over_and_that_is_logged(tmp_path, caplog):
    with held_elsewhere(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / LOCK).exists()
    with caplog.at_level("DEBUG", "onion"), exclusive_lock(tmp_path, RUN):
        assert owner_in(tmp_path)["pid"] == os.getpid()
    assert caplog.messages[0].startswith(f"took {tmp_path} over from process {process.pid} on ")


@pytest.mark.parametrize("rest", [b"", b"{", b"[1]", b"\xff", b'{"pid": "x"}', b'{"pid": 1, "host": "elsewhere"}'])
def test_a_lock_that_nobody_holds_is_free_whatever_it_says(rest, tmp_path):
    (tmp_path / LOCK).write_bytes(rest)
    with exclusive_lock(tmp_path, RUN):
        assert owner_in(tmp_path)["pid"] == os.getpid()


def test_a_lock_removed_between_opening_and_locking_is_not_taken_for_ours(tmp_path, monkeypatch):
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
        refused(tmp_path, f"in use by process {process.pid} on ")
        process.stdin.close()
        assert process.wait() == 0
    assert list(tmp_path.iterdir()) == []


def test_a_lock_whose_owner_is_gone_is_held_by_a_child_of_it_and_the_error_says_so(tmp_path):
    sign(tmp_path, owner := gone())
    said = rf"process {owner} on .*, which is gone, has left a child that holds it; end that \(it has .*\.lock open\)"
    with (tmp_path / LOCK).open() as left:
        fcntl.flock(left, fcntl.LOCK_EX)  # as a child does that was forked by other means than Python's
        refused(tmp_path, said)
    enter(tmp_path)


# -- file systems without locks ---------------------------------------------------------------------------------------


@pytest.fixture
def without_locks(monkeypatch):
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


def test_without_locks_the_name_of_the_owner_keeps_others_out_unless_it_is_dead(without_locks, tmp_path):
    sign(tmp_path, os.getppid())
    refused(tmp_path, rf"process {os.getppid()} on .* \(train.py\)")
    sign(tmp_path, 1, "elsewhere")  # it may live
    refused(tmp_path, r"on elsewhere.*If it is gone, delete .*\.lock")
    sign(tmp_path, gone())
    enter(tmp_path)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    refused(tmp_path / "no", r"cannot write .*\.lock: No such file")
    assert not (tmp_path / "no").exists()


# -- what lies in the lock's place ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [Path.symlink_to, Path.hardlink_to, lambda lock, precious: os.mkfifo(lock)],
    ids=["link", "hard link", "pipe"],
)
def test_what_is_no_file_of_its_own_is_refused_and_not_written_to(place, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("thesis")
    place(tmp_path / LOCK, precious)
    told = r"cannot write .*\.lock: what stands there is a link, a pipe or a device, and no lock of onion; remove it"
    refused(tmp_path, told)
    assert precious.read_text() == "thesis"
    assert sorted(path.name for path in tmp_path.iterdir()) == [LOCK, "precious"]


def test_a_link_to_nothing_makes_nothing(tmp_path):
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    refused(tmp_path, "what stands there is a link")
    assert not (tmp_path / "elsewhere").exists()


# -- a folder that is deleted under its run ---------------------------------------------------------------------------


@pytest.fixture
def out(tmp_path):
    """A folder that can be deleted."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def recreate(folder):
    shutil.rmtree(folder)
    folder.mkdir()


def test_the_lock_of_another_run_in_a_recreated_folder_is_left_to_it(out):
    with exclusive_lock(out, RUN):
        recreate(out)
        process = held_elsewhere(out)
        refused(out, f"in use by process {process.pid} on ")
    with process:
        assert owner_in(out)["pid"] == process.pid
        refused(out, f"in use by process {process.pid} on ", OTHER)
        process.stdin.close()


def test_a_recreated_folder_is_taken_again_by_its_run(out, caplog):
    with exclusive_lock(out, RUN):
        recreate(out)
        with exclusive_lock(out, RUN):
            assert owner_in(out)["pid"] == os.getpid()
        assert caplog.messages == [f"{out / LOCK} was removed while the run was at work there, and is made again"]
        with started(HOLD, out) as process:
            assert process.stdout.read() == ""  # it is kept out
    assert list(out.iterdir()) == []


# -- interrupts -------------------------------------------------------------------------------------------------------


def is_locked(folder):
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
        refused(tmp_path, "another run of this process", OTHER)
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
        enter(tmp_path, OTHER)
        assert list(tmp_path.iterdir()) == [], at
