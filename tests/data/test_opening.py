"""What is opened for data: files, and pipes with a writer; all else is refused before anything is read."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from onion.data import files, read_rows
from onion.data.files import iter_lines, iter_rows
from onion.data.opening import is_fed, opened, refuse_pipe
from onion.errors import DataError
from tests.patience import PATIENCE


def refused(path, told):
    with pytest.raises(DataError, match=told), opened(path):
        pass


def test_a_file_is_read(tmp_path):
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "link").symlink_to("a")
    for name in ("a", "link"):
        with opened(tmp_path / name) as file:
            assert file.read() == b"content"
        assert not is_fed(tmp_path / name)
        refuse_pipe(tmp_path / name)


def test_a_named_pipe_is_refused_and_not_waited_for_even_where_this_process_writes_to_it(tmp_path):
    pipe = tmp_path / "pipe.tsv"
    os.mkfifo(pipe)
    told = r"pipe\.tsv: this is a pipe, which may never end; write what it gives to a file, and name that"
    refused(pipe, told)
    for read in (read_rows, lambda path: next(iter_rows(path))):
        with pytest.raises(DataError, match=told):
            read(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)
    os.close(reader)
    try:
        refused(pipe, "this is a pipe")
    finally:
        os.close(writer)


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_devices_are_refused(tmp_path, name):
    (tmp_path / "a.tsv").symlink_to(name)
    refused(tmp_path / "a.tsv", r"a\.tsv: this is a device or a socket, which may never end; write")


def test_sockets_and_folders_are_refused(tmp_path):
    with tempfile.TemporaryDirectory(dir="/tmp") as short, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{short}/s")  # a socket's name has a hundred bytes at most
        refused(Path(short, "s"), "this is a device or a socket")
    refused(tmp_path, "this is a folder; name a file in it")


READ = """
import sys
from pathlib import Path
from onion.data.files import read_rows
from onion.data.opening import is_fed
print(is_fed(Path(sys.argv[1])), list(read_rows(sys.argv[1])))
"""


def test_what_a_process_was_started_with_is_read(tmp_path):
    (tmp_path / "a.tsv").symlink_to("/dev/stdin")
    words = [sys.executable, "-c", READ, str(tmp_path / "a.tsv")]
    done = subprocess.run(words, input=b"x\n1\n2\n", capture_output=True, timeout=PATIENCE)
    assert done.stdout == b"True [{'x': '1'}, {'x': '2'}]\n", done.stderr


def test_what_a_shell_feeds_is_read(tmp_path):
    command = 'ln -s "$1" "$2/a.tsv" && exec "$3" -c "$4" "$2/a.tsv"'
    words = ["bash", "-c", f'run() {{ {command}; }}; run <(printf "x\\n1\\n") "$@"', "bash"]
    words += [str(tmp_path), sys.executable, READ]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    assert done.stdout == b"True [{'x': '1'}]\n", done.stderr


def test_a_pipe_is_no_file_to_be_read_twice():
    theirs, ours = os.pipe()
    try:
        assert is_fed(Path(f"/dev/fd/{theirs}"))
        with pytest.raises(DataError, match=r"this is a pipe or a terminal, and it has to be read more than once"):
            refuse_pipe(Path(f"/dev/fd/{theirs}"))
    finally:
        os.close(theirs)
        os.close(ours)


def test_a_terminal_is_fed_and_the_null_device_is_not(tmp_path):
    ours, theirs = os.openpty()
    try:
        assert is_fed(Path(os.ttyname(theirs)))
    finally:
        os.close(ours)
        os.close(theirs)
    with Path(os.devnull).open("rb"):
        assert not is_fed(Path(os.devnull))
    assert not is_fed(tmp_path / "none")
    assert not is_fed(Path("nul\0"))


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 100)
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 99 + b"\n" + b"y" * 100)
    assert [len(line) for _, line in iter_lines(path)] == [99, 100]
    path.write_bytes(b"x\n" + b"y" * 101)
    with pytest.raises(DataError, match=r"a\.txt:2: this line has more than 0 MiB; is this a text, with line ends\?"):
        list(iter_lines(path))
