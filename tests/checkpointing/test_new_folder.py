"""A folder that appears whole."""

import pytest

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
