"""A folder that appears whole."""

import os
import stat

import pytest

from onion.checkpointing.atomic_files import Files, through
from onion.checkpointing.new_folder import new_folder
from onion.errors import DataError
from tests.tasks.helpers import snapshot


def test_a_folder_that_somebody_else_filled_meanwhile_is_left_alone(tmp_path):
    ours = new_folder(tmp_path / "o")
    (ours.__enter__() / "a").write_text("ours")
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "a").write_text("theirs")
    with pytest.raises(DataError, match=r"cannot be written: .+; nothing was written"):
        ours.__exit__(None, None, None)
    assert snapshot(tmp_path) == {"o": None, "o/a": b"theirs"}


class Full(Files):
    """A disk that notices only when a file is synced that it has no room for it."""

    def sync(self, handle):
        if stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(28, "No space left on device")
        super().sync(handle)


def test_a_folder_appears_only_when_its_files_are_on_the_disk(tmp_path):
    ours = new_folder(tmp_path / "o")
    (ours.__enter__() / "a").write_text("ours")
    with through(Full()), pytest.raises(DataError, match="No space left on device; nothing was written"):
        ours.__exit__(None, None, None)
    assert snapshot(tmp_path) == {}
