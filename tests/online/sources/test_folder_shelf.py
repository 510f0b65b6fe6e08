"""The numbered files of a folder after a crash at any moment."""

import pytest

from onion.checkpointing.atomic_files import Files, through
from onion.errors import DataError
from onion.online.sources.folder_shelf import REMOVED, FolderShelf


@pytest.fixture
def shelf(tmp_path):
    shelf = FolderShelf(tmp_path)
    shelf.make()
    for name in "abc":
        (tmp_path / name).write_text(name)
        shelf.take(tmp_path / name)
    return shelf


def fresh(shelf):
    other = FolderShelf(shelf.path)
    other.look()
    return other


def names(folder):
    return sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))


def test_what_it_knows_is_what_stands_there(shelf):
    shelf.put_away(3)
    shelf.prune(2, 0)
    for each in (shelf, fresh(shelf)):
        assert (each.oldest, each.next) == (2, 4)
        assert each.path_at((2, 0)) == shelf.trained / "000000002-b"
        assert each.path_at((3, 7)) == shelf.taken / "000000003-c"
        assert each.path_at((4, 0)) is None
    assert names(shelf.taken) + names(shelf.trained) == ["000000003-c", "000000002-b"]


class Dying(Files):
    """The process is gone before the n-th rename."""

    def __init__(self, n):
        self.left = n

    def rename(self, source, target):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        super().rename(source, target)


@pytest.mark.parametrize("n", [1, 2])
def test_a_crash_while_files_are_put_away(shelf, n):
    with through(Dying(n)), pytest.raises(KeyboardInterrupt):
        shelf.put_away(4)
    again = fresh(shelf)
    assert again.next == 4
    again.put_away(4)
    assert names(again.trained) == ["000000001-a", "000000002-b", "000000003-c"]


def test_a_crash_before_it_is_noted_what_is_removed(shelf):
    shelf.put_away(3)
    with through(Dying(1)), pytest.raises(KeyboardInterrupt):
        shelf.prune(3, 0)
    assert fresh(shelf).oldest == 1


def test_a_crash_between_the_note_and_the_removal(shelf, monkeypatch):
    def die(self, missing_ok):
        raise KeyboardInterrupt

    shelf.put_away(3)
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.PosixPath.unlink", die)
        with pytest.raises(KeyboardInterrupt):
            shelf.prune(3, 0)
    assert len(names(shelf.trained)) == 2
    again = fresh(shelf)
    assert (again.oldest, again.next) == (3, 4)
    assert names(shelf.trained) == []


def test_a_damaged_note_is_told(shelf):
    (shelf.taken / REMOVED).write_text("many")
    with pytest.raises(DataError, match="invalid literal"):
        fresh(shelf)


def test_many_files_have_more_digits(shelf):
    (shelf.taken / REMOVED).write_text("999999999")
    for path in shelf.taken.glob("0*"):
        path.unlink()
    again = fresh(shelf)
    (shelf.path / "d").touch()
    again.take(shelf.path / "d")
    assert names(shelf.taken) == ["1000000000-d"]
    assert fresh(shelf).next == 10**9 + 1
