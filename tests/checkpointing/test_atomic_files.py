import os
import resource
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from onion.checkpointing.atomic_files import replace_file, sync_folder, write_synced
from onion.checkpointing.lock import locked
from tests.checkpointing.folders import names


@pytest.mark.parametrize("name", ["a.txt", "x" * 255, "中" * 85])
def test_a_new_file_and_an_old_one(tmp_path, name):
    path = tmp_path / name
    replace_file(path, b"one")
    assert path.read_bytes() == b"one"
    replace_file(path, (piece for piece in (b"tw", b"", b"o")))
    assert path.read_bytes() == b"two"
    assert names(tmp_path) == [name]


def test_the_mode_is_what_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "a", b"")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("old", [None, b"old"])
def test_an_error_on_the_way_leaves_what_was_there(tmp_path, error, old):
    path = tmp_path / "a"
    if old is not None:
        path.write_bytes(old)

    def pieces():
        yield b"new" * 10000
        raise error

    with pytest.raises(error):
        replace_file(path, pieces())
    assert names(tmp_path) == ([] if old is None else ["a"])
    assert old is None or path.read_bytes() == old


def test_a_folder_that_is_not_there_or_is_the_path_itself(tmp_path):
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "none" / "a", b"")
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path / "a", b"")
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == []


def test_what_a_link_points_to_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "a")
    for content in (b"first", b"second"):  # the first time the link points to nothing yet
        replace_file(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real" / "a").read_bytes() == content
    assert names(tmp_path / "real") == ["a"]


def test_a_disk_without_space(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    code = """
import resource, sys
from pathlib import Path
from onion.checkpointing.atomic_files import replace_file, write_synced
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for write in (replace_file, write_synced):
    try:
        write(Path(sys.argv[1]), b"n" * 1001)
    except OSError as error:
        print(error.strerror)
    sys.argv[1] += "2"
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("File too large\n" * 2, "")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a", "a2"]  # write_synced promises no more than that


def test_a_locked_folder_is_locked_until_it_is_left_and_can_be_written(tmp_path):
    for _ in range(2):
        with locked(tmp_path):
            write_synced(tmp_path / "a", b"one")
            sync_folder(tmp_path)
            with pytest.raises(BlockingIOError), locked(tmp_path):
                pass
    assert names(tmp_path) == ["a"]


WRITER = """
import os, sys
from pathlib import Path
from onion.checkpointing.atomic_files import replace_file

def pieces():
    yield b"half"
    print("half", flush=True)
    sys.stdin.readline()
    yield b" and half"

replace_file(Path(sys.argv[1]), pieces())
"""


@pytest.fixture
def writer(tmp_path):
    """A process that has written half of the file ``a``, and waits for a line."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "a")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "half\n"
        yield process
        process.kill()


def test_what_a_killed_writer_left_goes_when_the_file_is_written_again(tmp_path, writer):
    writer.kill()
    writer.wait()
    (left,) = names(tmp_path)
    with locked(tmp_path / left):  # which the writer had locked
        pass
    replace_file(tmp_path / "b", b"")
    assert left in names(tmp_path)  # another file's
    replace_file(tmp_path / "a", b"whole")
    assert names(tmp_path) == ["a", "b"]


def test_what_a_living_writer_has_so_far_stays(tmp_path, writer):
    replace_file(tmp_path / "a", b"first")
    assert len(names(tmp_path)) == 2
    writer.communicate("\n")
    assert writer.returncode == 0
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"half and half"


def test_a_temporary_that_was_taken_for_abandoned_is_made_again(tmp_path, monkeypatch):
    made = []

    def taken_once(*, prefix, suffix, dir):
        handle, name = mkstemp(prefix=prefix, suffix=suffix, dir=dir)
        made.append(name)
        if len(made) == 1:
            Path(name).unlink()
        return handle, name

    mkstemp = tempfile.mkstemp
    monkeypatch.setattr(tempfile, "mkstemp", taken_once)
    replace_file(tmp_path / "a", b"whole")
    assert len(made) == 2
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"whole"
