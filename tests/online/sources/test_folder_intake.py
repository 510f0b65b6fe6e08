"""How files come into a folder: which are ready, which are taken, and which are rejected."""

import json
import math
import os
import tracemalloc
from pathlib import Path

import pytest

from onion.checkpointing.atomic_files import Files, through
from onion.data.files import iter_rows
from onion.errors import DataError
from onion.online.sources import folder_intake
from onion.online.sources.folder_intake import FolderIntake
from onion.online.sources.folder_shelf import FolderShelf

ROW = '{"id": 1}\n'


@pytest.fixture
def path(tmp_path):
    return tmp_path


@pytest.fixture
def shelf(path):
    shelf = FolderShelf(path)
    shelf.make()
    return shelf


@pytest.fixture
def intake(path, shelf):
    return FolderIntake(path, shelf, 0.0)


def names(folder):
    return sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))


def rejections(path):
    return [json.loads(line) for line in (path / "rejected" / "rejected.jsonl").read_text().splitlines()]


def take_all(intake):
    while intake.take(math.inf):
        pass


@pytest.mark.parametrize("name", [".a.jsonl", "a.jsonl.partial", "a.jsonl.tmp", ".hidden"])
def test_a_file_that_is_not_ready_by_its_name_waits(path, shelf, intake, name, caplog):
    (path / name).write_text(ROW)
    take_all(intake)
    assert names(shelf.taken) == []
    assert (path / name).exists()
    assert caplog.text == ""
    (path / name).rename(path / "ready.jsonl")
    take_all(intake)
    assert names(shelf.taken) == ["000000001-ready.jsonl"]


def test_other_endings_folders_and_links_are_left_alone(path, shelf, intake, caplog):
    (path / "notes.txt").write_text("notes")
    (path / "folder.jsonl").mkdir()
    (path / "link.jsonl").symlink_to(path / "notes.txt")
    take_all(intake)
    take_all(intake)
    assert names(path) == ["folder.jsonl", "link.jsonl", "notes.txt", "taken", "trained"]
    assert caplog.text.count("notes.txt is left where it is: its name ends with none of .jsonl, .csv, .tsv") == 1


def test_a_file_settles_by_the_clock_of_its_file_system(path, shelf, monkeypatch):
    now = [1000.0]
    intake = FolderIntake(path, shelf, 2.0)
    monkeypatch.setattr(intake, "_now", lambda: now[0])
    (path / "a.jsonl").write_text(ROW)
    os.utime(path / "a.jsonl", (0, 999.0))
    take_all(intake)
    now[0] = 1000.9
    take_all(intake)
    assert names(shelf.taken) == []
    now[0] = 1001.0
    take_all(intake)
    assert names(shelf.taken) == ["000000001-a.jsonl"]


def test_that_clock_is_the_time_files_get(path, intake):
    before = intake._now()
    (path / "a").touch()
    assert before <= (path / "a").stat().st_mtime <= intake._now()


def test_a_time_to_come_was_set_on_purpose(path, shelf):
    (path / "a.jsonl").write_text(ROW)
    os.utime(path / "a.jsonl", (0, 2**32))
    take_all(FolderIntake(path, shelf, 5.0))
    assert names(shelf.taken) == ["000000001-a.jsonl"]


def test_one_that_is_not_settled_does_not_hold_up_others(path, shelf):
    for name in ("a.jsonl", "b.jsonl"):
        (path / name).write_text(ROW)
    os.utime(path / "b.jsonl", (0, 1.0))
    take_all(FolderIntake(path, shelf, 3600.0))
    assert names(shelf.taken) == ["000000001-b.jsonl"]


@pytest.mark.parametrize(
    ("name", "content", "line", "reason"),
    [
        ("a.jsonl", b'{"a": 1}\n{"a": 2\n', 2, "broken JSON"),
        ("a.jsonl", b'{"a": 1}\n\xff\n', 2, "not UTF-8"),
        ("a.jsonl", b"[1]\n", 1, "not an object"),
        ("a.csv", b'text\n"open\n', 2, "broken CSV"),
        ("a.tsv", b"text\tlabel\na\n", 2, "expected 2 columns"),
        ("a.tsv", b"", 1, "no header"),
    ],
)
def test_a_file_that_cannot_be_read_whole_is_rejected(path, shelf, intake, name, content, line, reason, caplog):
    (path / name).write_bytes(content)
    (path / f"b{name}").write_bytes(b"text\na\n" if "jsonl" not in name else ROW.encode())
    take_all(intake)
    assert names(shelf.taken) == [f"000000001-b{name}"]
    assert (path / "rejected" / name).read_bytes() == content
    (row,) = rejections(path)
    assert (row["file"], row["line"]) == (name, line)
    assert reason in row["reason"]
    assert "is rejected" in caplog.text


def test_rejected_files_of_the_same_name_stand_beside_each_other(path, shelf, intake):
    for content in ("{1", "{2", "{3"):
        (path / "a.jsonl").write_text(content)
        take_all(intake)
    (path / "rejected.jsonl").write_text("{")
    take_all(intake)
    assert names(path / "rejected") == ["2-a.jsonl", "2-rejected.jsonl", "3-a.jsonl", "a.jsonl", "rejected.jsonl"]
    assert [row["file"] for row in rejections(path)] == ["a.jsonl", "2-a.jsonl", "3-a.jsonl", "2-rejected.jsonl"]


def test_long_names_find_room(path, shelf, intake):
    for content, start in ((ROW, "g"), ("{", "b")):
        (path / f"{start}{'旅' * 80}.jsonl").write_text(content)
    take_all(intake)
    assert [len(name) for name in names(shelf.taken)] == [70]
    assert sorted(len(name) for name in names(path / "rejected")) == [len("rejected.jsonl"), 60]


def test_a_large_file_is_looked_through_little_by_little_and_not_in_memory(path, shelf, intake):
    with (path / "a.jsonl").open("w") as file:
        file.writelines(f'{{"id": {number}, "text": "{"x" * 500}"}}\n' for number in range(10_500))
    tracemalloc.start()
    calls = 1
    while not intake.take(deadline=-math.inf):
        assert names(shelf.taken) == []
        calls += 1
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert calls == 11
    assert most < 500_000  # the file has 5 MB
    assert names(shelf.taken) == ["000000001-a.jsonl"]


def test_a_file_that_changes_while_it_is_looked_through_is_looked_through_anew(path, shelf, intake):
    (path / "a.jsonl").write_text(ROW * 1500)
    assert not intake.take(-math.inf)
    with (path / "a.jsonl").open("a") as file:
        file.write("{\n")
    take_all(intake)
    assert names(shelf.taken) == []
    assert rejections(path)[0]["line"] == 1501


def test_so_is_one_that_changes_where_it_was_looked_at_before(path, shelf, intake):
    (path / "a.jsonl").write_text(ROW * 1500)
    os.utime(path / "a.jsonl", (0, 1.0))
    assert not intake.take(-math.inf)
    with (path / "a.jsonl").open("r+") as file:
        file.write("{{")
    take_all(intake)
    assert names(shelf.taken) == []
    assert rejections(path)[0]["line"] == 1


def test_a_file_that_is_gone_before_it_is_opened_is_forgotten(path, shelf, intake, monkeypatch):
    def too_late(file):
        file.unlink()
        return iter_rows(file)

    monkeypatch.setattr(folder_intake, "iter_rows", too_late)
    (path / "a.jsonl").write_text(ROW)
    take_all(intake)
    assert not (path / "rejected").exists()


def test_the_first_file_that_is_rejected_may_have_the_name_of_the_log(path, shelf, intake):
    (path / "rejected.jsonl").write_text("{")
    take_all(intake)
    assert names(path / "rejected") == ["2-rejected.jsonl", "rejected.jsonl"]
    assert len(rejections(path)) == 1


def test_a_file_that_is_taken_away_meanwhile_is_forgotten(path, shelf, intake):
    for name in "ab":
        (path / f"{name}.jsonl").write_text(ROW)
    assert intake.take(math.inf)
    (path / "b.jsonl").unlink()
    take_all(intake)
    assert names(shelf.taken) == ["000000001-a.jsonl"]
    assert not (path / "rejected").exists()


def test_what_was_begun_is_forgotten_when_it_is_closed(path, shelf, intake):
    (path / "a.jsonl").write_text(ROW * 1500)
    assert not intake.take(-math.inf)
    (path / "a.jsonl").unlink()
    intake.close()
    assert not intake.take(math.inf)


@pytest.mark.parametrize("content", [ROW, "{"])
def test_a_disk_that_refuses_is_told_and_the_file_stays(path, shelf, intake, content):
    class Refusing(Files):
        def rename(self, source, target):
            raise OSError(28, "No space left on device")

    (path / "a.jsonl").write_text(content)
    with through(Refusing()), pytest.raises(DataError, match="No space left on device; check the disk"):
        take_all(intake)
    assert (path / "a.jsonl").read_text() == content


def test_what_is_taken_is_on_the_disk(path, shelf, intake):
    done = []

    class Telling(Files):
        def sync(self, handle):
            done.append(Path(f"/proc/self/fd/{handle}").readlink().name)

        def rename(self, source, target):
            super().rename(source, target)
            done.append("rename")

    if not Path("/proc/self/fd").exists():
        pytest.skip("no /proc here")
    (path / "a.jsonl").write_text(ROW)
    with through(Telling()):
        take_all(intake)
    assert done == ["a.jsonl", "rename", "taken", path.name]


@pytest.mark.parametrize(
    ("ending", "told", "count"), [("jsonl", "is rejected: ", 1), ("txt", "is left where it is: ", 0)]
)
def test_names_that_are_no_text_are_told_as_text(path, shelf, intake, caplog, ending, told, count):
    (path / os.fsdecode(b"a\xff." + ending.encode())).write_text("{")
    take_all(intake)
    assert f"{path}/a\\udcff.{ending} {told}" in caplog.text
    assert caplog.text.encode()  # a log in a file is UTF-8
    assert (path / "rejected").exists() == (count > 0)
    assert count == 0 or len(rejections(path)) == count


def test_the_endings_are_those_that_rows_are_read_of():
    assert folder_intake.ENDINGS == (".jsonl", ".csv", ".tsv")
