"""Folder: each file once, as a whole or not at all; positions; and what becomes of a file."""

import json
import os
import shutil
import subprocess
import sys
from datetime import timedelta

import pytest

from onion.errors import CompositionError, DataError
from onion.online import Folder
from onion.online.sources import folder


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "inbox"
    path.mkdir()
    return path


@pytest.fixture
def open_folder(path, opened):
    return lambda **settings: opened(Folder(path, **{"settle": 0, **settings}))


@pytest.fixture
def source(open_folder):
    return open_folder(retention=0)


def put(path, name, rows, age=0):
    (path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    if age:
        os.utime(path / name, (0, (path / name).stat().st_mtime - age))


def rows(*numbers):
    return [{"id": number} for number in numbers]


def ids(samples):
    return [sample.data["id"] for sample in samples]


def place(there):
    """Return the file and line of a position, without the id of the folder."""
    line, _, origin = there.position.partition("@")
    assert len(origin) == 16
    return line


def drain(source):
    while source.read(1, 0):
        pass


def names(path):
    return sorted(str(each.relative_to(path)) for each in path.rglob("[!.]*") if each.is_file())


# -- reading -----------------------------------------------------------------------------------------------------------


def test_files_come_in_the_order_of_their_names(path, source):
    assert source.read(1, 0) == []
    put(path, "b.jsonl", rows(3))
    put(path, "a.jsonl", rows(1, 2))
    assert source.position == ""
    (sample,) = source.read(1, 0)
    assert (sample.data, place(sample)) == ({"id": 1}, "1:1")
    assert ids(source.read(9, 0)) == [2]
    assert place(source) == "2:0"
    assert ids(source.read(9, 0)) == [3]
    assert source.read(9, 0) == []
    assert names(path) == ["taken/000000001-a.jsonl", "taken/000000002-b.jsonl"]
    assert source.waiting() is None


def test_rows_of_several_taken_files_are_read_together(path, source):
    for name in "abc":
        put(path, f"{name}.jsonl", rows(name))
    drain(source)
    source.position = "1:0"
    samples = source.read(9, 0)
    assert ids(samples) == ["a", "b", "c"]
    assert [place(sample) for sample in samples] == ["2:0", "3:0", "4:0"]


@pytest.mark.parametrize(
    ("name", "text", "there"),
    [
        ("a.csv", 'text,label\n"two\nlines, ""quoted""",1\nb,2\n', [('two\nlines, "quoted"', "1"), ("b", "2")]),
        ("a.tsv", "text\tlabel\na\t1\n旅\t2\n\n", [("a", "1"), ("旅", "2")]),
        ("a.TSV", "text\tlabel\na\t1\n", [("a", "1")]),
    ],
)
def test_tables_are_read(path, source, name, text, there):
    (path / name).write_text(text)
    samples = source.read(9, 0)
    assert [(sample.data["text"], sample.data["label"]) for sample in samples] == there
    source.position = samples[0].position
    assert len(source.read(9, 0)) == len(there) - 1


def test_a_file_without_rows_is_skipped(path, source):
    put(path, "a.jsonl", [])
    put(path, "b.jsonl", rows(1))
    (sample,) = source.read(9, 0)
    assert place(sample) == "3:0"


def test_it_waits_for_a_file(path, source, monkeypatch):
    monkeypatch.setattr(folder, "sleep", lambda seconds: put(path, "a.jsonl", rows(1)))
    assert ids(source.read(5, 60)) == [1]


def test_another_folder_of_the_same_name_is_refused(path, source, open_folder):
    for name in "abc":
        put(path, f"{name}.jsonl", rows(name))
        assert ids(source.read(1, 0)) == [name]
    position = source.position
    source.close()
    shutil.rmtree(path)
    other = open_folder()
    path.mkdir()
    for name in "defg":
        put(path, f"{name}.jsonl", rows(name))
    drain(other)  # another run has taken them
    other.close()
    source.position = position
    for attempt in (lambda: source.read(1, 0), lambda: source.commit(position)):
        with pytest.raises(DataError, match=r"its id is [0-9a-f]{16}, and that of the folder .* restore that folder"):
            attempt()
    assert len(names(path)) == 4


def test_positions_of_an_earlier_version_are_valid(path, source, open_folder):
    put(path, "a.jsonl", rows(1, 2))
    source.read(1, 0)
    source.close()
    (path / "taken" / ".origin").unlink()
    again = open_folder()
    again.position = "1:1"
    assert ids(again.read(1, 0)) == [2]
    assert place(again) == "2:0"


def test_a_second_run_is_refused(path, source, open_folder):
    source.read(1, 0)
    with pytest.raises(DataError, match="is in use by another run of this process"):
        open_folder().read(1, 0)
    code = "import sys\nfrom onion.online import Folder\nFolder(sys.argv[1]).read(1, 0)\n"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert f"in use by process {os.getpid()}" in done.stderr
    source.close()
    assert open_folder().read(1, 0) == []


def shortened(path, source):
    put(path / "taken", "000000001-a.jsonl", rows(1))
    source.position = source.position


def lost(path, source):
    put(path, "b.jsonl", rows(2))
    assert ids(source.read(2, 0) + source.read(2, 0)) == [2, 2]
    source.close()
    (path / "taken" / "000000001-a.jsonl").unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda path, source: setattr(source, "position", "3:0"),
            r"behind the last file, number 1, .* restore that folder",
        ),
        (
            lambda path, source: setattr(source, "position", "2:1"),
            r"behind the last file, number 1, .* restore that folder",
        ),
        (shortened, "has no row after line 1 any more; restore the original file"),
        (lost, r"there is no file 000000001-\.\.\. in taken or trained, .*; restore it"),
    ],
)
def test_files_that_are_not_as_they_were_are_an_error(path, source, change, message):
    put(path, "a.jsonl", rows(1, 2))
    source.read(1, 0)
    change(path, source)
    with pytest.raises(DataError, match=message):
        source.read(1, 0)


def test_a_path_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="check the disk, and who may read and write this folder"):
        Folder(tmp_path / "file").read(1, 0)


def test_a_missing_folder_is_created(tmp_path, opened):
    assert opened(Folder(tmp_path / "new" / "inbox")).read(1, 0) == []


# -- what becomes of files ---------------------------------------------------------------------------------------------


def test_a_commit_moves_files_that_were_read_to_their_end(path, open_folder):
    source = open_folder()
    put(path, "a.jsonl", rows(1, 2))
    put(path, "b.jsonl", rows(3, 4))
    samples = source.read(2, 0) + source.read(1, 0)
    source.commit(samples[0].position)
    assert names(path) == ["taken/000000001-a.jsonl", "taken/000000002-b.jsonl"]
    source.commit(samples[2].position)
    assert names(path) == ["taken/000000002-b.jsonl", "trained/000000001-a.jsonl"]
    source.position = "1:1"
    assert ids(source.read(9, 0)) == [2, 3, 4]


def test_old_files_are_removed_once_they_are_committed(path, open_folder):
    source = open_folder(retention=timedelta(days=1))
    put(path, "a.jsonl", rows(1), age=2 * 86400)
    put(path, "b.jsonl", rows(2))
    put(path, "c.jsonl", rows(3), age=2 * 86400)
    drain(source)
    source.commit("")
    assert len(names(path)) == 3
    source.commit(source.position)
    assert names(path) == ["trained/000000002-b.jsonl", "trained/000000003-c.jsonl"]  # no gaps


def test_files_are_removed_down_to_a_size(path, open_folder):
    source = open_folder(retention=30)
    for name in "abcd":
        put(path, f"{name}.jsonl", rows(1))  # 10 bytes
    drain(source)
    source.commit("4:0")
    assert names(path) == ["taken/000000004-d.jsonl", *(f"trained/00000000{n}-{' abc'[n]}.jsonl" for n in (1, 2, 3))]
    source.commit("5:0")
    assert names(path) == [f"trained/00000000{n}-{' abcd'[n]}.jsonl" for n in (2, 3, 4)]


def test_numbers_are_not_used_again(path, source, open_folder):
    put(path, "a.jsonl", rows(1))
    source.read(1, 0)
    source.commit("2:0")
    assert names(path) == []
    source.close()
    put(path, "a.jsonl", rows(2))
    again = open_folder()
    (sample,) = again.read(1, 0)
    assert place(sample) == "3:0"
    assert names(path) == ["taken/000000002-a.jsonl"]


@pytest.mark.parametrize("settle", [-1, None, float("nan")])
def test_a_wrong_settle_is_refused(settle):
    with pytest.raises(CompositionError, match="settle must be a number of seconds >= 0"):
        Folder("inbox", settle=settle)
