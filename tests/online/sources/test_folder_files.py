"""FolderWatcher and FolderArchive: files are taken or rejected, numbered, moved, removed."""

import math
import os
import tracemalloc
from pathlib import Path

import pytest

from onion.checkpointing.atomic_files import Files, through
from onion.data.files import iter_rows
from onion.errors import DataError
from onion.online.sources import folder_files
from onion.online.sources.folder_files import REMOVED, FolderArchive, FolderWatcher
from tests.online.toys import rows_in

ROW = '{"id": 1}\n'


@pytest.fixture
def path(tmp_path):
    return tmp_path


@pytest.fixture
def archive(path):
    archive = FolderArchive(path)
    archive.make()
    return archive


@pytest.fixture
def watcher(path, archive):
    return FolderWatcher(path, archive, 0.0)


def names(folder):
    return sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))


def rejections(path):
    return rows_in(path / "rejected" / "rejected.jsonl")


def take_all(watcher):
    while watcher.take(math.inf):
        pass


@pytest.mark.parametrize("name", [".a.jsonl", "a.jsonl.partial", "a.jsonl.tmp", ".hidden"])
def test_a_file_that_is_unfinished_by_its_name_waits(path, archive, watcher, name, caplog):
    (path / name).write_text(ROW)
    take_all(watcher)
    assert names(archive.taken) == []
    assert (path / name).exists()
    assert caplog.text == ""
    (path / name).rename(path / "ready.jsonl")
    take_all(watcher)
    assert names(archive.taken) == ["000000001-ready.jsonl"]


def test_other_endings_folders_and_links_are_ignored(path, archive, watcher, caplog):
    (path / "notes.txt").write_text("notes")
    (path / "folder.jsonl").mkdir()
    (path / "link.jsonl").symlink_to(path / "notes.txt")
    take_all(watcher)
    take_all(watcher)
    assert names(path) == ["folder.jsonl", "link.jsonl", "notes.txt", "taken", "trained"]
    assert caplog.text.count("notes.txt is ignored: its name ends with none of .jsonl, .csv, .tsv") == 1


def test_a_file_settles_by_the_clock_of_its_file_system(path, archive, monkeypatch):
    now = [1000.0]
    watcher = FolderWatcher(path, archive, 2.0)
    monkeypatch.setattr(watcher, "_now", lambda: now[0])
    (path / "a.jsonl").write_text(ROW)
    os.utime(path / "a.jsonl", (0, 999.0))
    take_all(watcher)
    now[0] = 1000.9
    take_all(watcher)
    assert names(archive.taken) == []
    now[0] = 1001.0
    take_all(watcher)
    assert names(archive.taken) == ["000000001-a.jsonl"]


def test_that_clock_is_the_one_that_sets_the_times_of_files(path, watcher):
    before = watcher._now()
    (path / "a").touch()
    assert before <= (path / "a").stat().st_mtime <= watcher._now()


@pytest.mark.parametrize(("settle", "time"), [(5.0, 2**32), (3600.0, 1.0)], ids=["in the future", "past"])
def test_times_that_were_set_on_purpose_are_settled_and_other_files_wait(path, archive, settle, time):
    for name in ("a.jsonl", "b.jsonl"):
        (path / name).write_text(ROW)
    os.utime(path / "b.jsonl", (0, time))
    take_all(FolderWatcher(path, archive, settle))
    assert names(archive.taken) == ["000000001-b.jsonl"]


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
def test_a_file_that_cannot_be_read_to_its_end_is_rejected(path, archive, watcher, name, content, line, reason, caplog):
    (path / name).write_bytes(content)
    (path / f"b{name}").write_bytes(b"text\na\n" if "jsonl" not in name else ROW.encode())
    take_all(watcher)
    assert names(archive.taken) == [f"000000001-b{name}"]
    assert (path / "rejected" / name).read_bytes() == content
    (row,) = rejections(path)
    assert (row["file"], row["line"]) == (name, line)
    assert reason in row["reason"]
    assert "is rejected" in caplog.text


def test_rejected_files_of_the_same_name_get_numbers(path, archive, watcher):
    for content in ("{1", "{2", "{3"):
        (path / "a.jsonl").write_text(content)
        take_all(watcher)
    (path / "rejected.jsonl").write_text("{")
    take_all(watcher)
    assert names(path / "rejected") == ["2-a.jsonl", "2-rejected.jsonl", "3-a.jsonl", "a.jsonl", "rejected.jsonl"]
    assert [row["file"] for row in rejections(path)] == ["a.jsonl", "2-a.jsonl", "3-a.jsonl", "2-rejected.jsonl"]


def test_long_names_find_room(path, archive, watcher):
    for content, start in ((ROW, "g"), ("{", "b")):
        (path / f"{start}{'旅' * 80}.jsonl").write_text(content)
    take_all(watcher)
    assert [len(name) for name in names(archive.taken)] == [70]
    assert sorted(len(name) for name in names(path / "rejected")) == [len("rejected.jsonl"), 60]


def test_a_large_file_is_checked_in_portions_and_in_constant_memory(path, archive, watcher):
    with (path / "a.jsonl").open("w") as file:
        file.writelines(f'{{"id": {number}, "text": "{"x" * 500}"}}\n' for number in range(10_500))
    tracemalloc.start()
    calls = 1
    while not watcher.take(deadline=-math.inf):
        assert names(archive.taken) == []
        calls += 1
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert calls == 11
    assert most < 500_000  # the file has 5 MB
    assert names(archive.taken) == ["000000001-a.jsonl"]


@pytest.mark.parametrize(("mode", "text", "line"), [("a", "{\n", 1501), ("r+", "{{", 1)], ids=["end", "checked part"])
def test_a_file_that_changes_while_it_is_checked_is_checked_again(path, archive, watcher, mode, text, line):
    (path / "a.jsonl").write_text(ROW * 1500)
    os.utime(path / "a.jsonl", (0, 1.0))
    assert not watcher.take(-math.inf)
    with (path / "a.jsonl").open(mode) as file:
        file.write(text)
    take_all(watcher)
    assert names(archive.taken) == []
    assert rejections(path)[0]["line"] == line


def test_a_file_that_is_removed_before_it_is_opened_is_forgotten(path, archive, watcher, monkeypatch):
    def too_late(file):
        file.unlink()
        return iter_rows(file)

    monkeypatch.setattr(folder_files, "iter_rows", too_late)
    (path / "a.jsonl").write_text(ROW)
    take_all(watcher)
    assert not (path / "rejected").exists()


def test_the_first_rejected_file_may_have_the_name_of_the_log(path, archive, watcher):
    (path / "rejected.jsonl").write_text("{")
    take_all(watcher)
    assert names(path / "rejected") == ["2-rejected.jsonl", "rejected.jsonl"]
    assert len(rejections(path)) == 1


def test_a_file_that_is_removed_before_its_turn_is_forgotten(path, archive, watcher):
    for name in "ab":
        (path / f"{name}.jsonl").write_text(ROW)
    assert watcher.take(math.inf)
    (path / "b.jsonl").unlink()
    take_all(watcher)
    assert names(archive.taken) == ["000000001-a.jsonl"]
    assert not (path / "rejected").exists()


def test_a_started_check_is_forgotten_when_it_is_closed(path, archive, watcher):
    (path / "a.jsonl").write_text(ROW * 1500)
    assert not watcher.take(-math.inf)
    (path / "a.jsonl").unlink()
    watcher.close()
    assert not watcher.take(math.inf)


@pytest.mark.parametrize("content", [ROW, "{"])
def test_a_failing_disk_is_an_error_and_the_file_stays(path, archive, watcher, content):
    class Refusing(Files):
        def rename(self, source, target):
            raise OSError(28, "No space left on device")

    (path / "a.jsonl").write_text(content)
    with through(Refusing()), pytest.raises(DataError, match="No space left on device; check the disk"):
        take_all(watcher)
    assert (path / "a.jsonl").read_text() == content


def test_what_is_taken_is_on_disk(path, archive, watcher):
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
        take_all(watcher)
    assert done == ["a.jsonl", "rename", "taken", path.name]


@pytest.mark.parametrize(("ending", "words"), [("jsonl", "is rejected: "), ("txt", "is ignored: ")])
def test_undecodable_names_are_logged_as_text(path, archive, watcher, caplog, ending, words):
    (path / os.fsdecode(b"a\xff." + ending.encode())).write_text("{")
    take_all(watcher)
    assert f"{path}/a\\udcff.{ending} {words}" in caplog.text
    assert caplog.text.encode()  # a log in a file is UTF-8
    assert (path / "rejected").exists() == (ending == "jsonl")
    assert ending == "txt" or len(rejections(path)) == 1


@pytest.fixture
def filled(archive, path):
    for name in "abc":
        (path / name).write_text(name)
        archive.take(path / name)
    return archive


def fresh(filled):
    other = FolderArchive(filled.path)
    other.scan()
    return other


def test_what_it_knows_is_what_is_on_disk(filled):
    filled.move_to_trained(3)
    filled.prune(2, 0)
    for each in (filled, fresh(filled)):
        assert (each.oldest, each.next) == (2, 4)
        assert each.path_at((2, 0)) == filled.trained / "000000002-b"
        assert each.path_at((3, 7)) == filled.taken / "000000003-c"
        assert each.path_at((4, 0)) is None
    assert names(filled.taken) + names(filled.trained) == ["000000003-c", "000000002-b"]


class Dying(Files):
    """The process dies before the n-th rename."""

    def __init__(self, n):
        self.left = n

    def rename(self, source, target):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        super().rename(source, target)


@pytest.mark.parametrize("n", [1, 2])
def test_a_crash_while_files_are_moved(filled, n):
    with through(Dying(n)), pytest.raises(KeyboardInterrupt):
        filled.move_to_trained(4)
    again = fresh(filled)
    assert again.next == 4
    again.move_to_trained(4)
    assert names(again.trained) == ["000000001-a", "000000002-b", "000000003-c"]


def test_a_crash_before_the_removal_is_recorded(filled):
    filled.move_to_trained(3)
    with through(Dying(1)), pytest.raises(KeyboardInterrupt):
        filled.prune(3, 0)
    assert fresh(filled).oldest == 1


def test_a_crash_between_the_record_and_the_removal(filled, monkeypatch):
    def die(self, missing_ok):
        raise KeyboardInterrupt

    filled.move_to_trained(3)
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.PosixPath.unlink", die)
        with pytest.raises(KeyboardInterrupt):
            filled.prune(3, 0)
    assert len(names(filled.trained)) == 2
    again = fresh(filled)
    assert (again.oldest, again.next) == (3, 4)
    assert names(filled.trained) == []


def test_a_damaged_record_is_an_error(filled):
    (filled.taken / REMOVED).write_text("many")
    with pytest.raises(DataError, match="invalid literal"):
        fresh(filled)


def test_more_than_nine_digits(filled):
    (filled.taken / REMOVED).write_text("999999999")
    for path in filled.taken.glob("0*"):
        path.unlink()
    again = fresh(filled)
    (filled.path / "d").touch()
    again.take(filled.path / "d")
    assert names(filled.taken) == ["1000000000-d"]
    assert fresh(filled).next == 10**9 + 1
