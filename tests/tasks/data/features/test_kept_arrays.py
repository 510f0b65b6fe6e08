"""Arrays in the cache: made once, in parts, and never found unless they are whole."""

import numpy as np
import pytest

from onion.errors import DataError
from onion.tasks.data.features.cache import features_folder, stored
from onion.tasks.data.features.kept_arrays import kept_arrays

ABOUT = {"task": "segments", "file": "corpus"}


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("ONION_HOME", str(tmp_path))


def parts():
    yield {"a": np.arange(3), "b": np.zeros(0, np.uint8)}
    yield {"b": np.array([7], np.uint8)}
    yield {"a": np.arange(2), "b": np.array([8], np.uint8)}


def test_parts_are_joined_and_mapped():
    for make in (parts, None):  # the second time they are not made
        found = kept_arrays("key", ABOUT, make)
        assert {name: values.tolist() for name, values in found.items()} == {"a": [0, 1, 2, 0, 1], "b": [7, 8]}
        assert (found["a"].dtype, found["b"].dtype) == (np.int64, np.uint8)
        assert not found["a"].flags.writeable
    (entry,) = stored()
    assert (entry.path.name, entry.about) == ("key", ABOUT)


def test_another_key_has_arrays_of_its_own():
    kept_arrays("key", ABOUT, parts)
    assert kept_arrays("other", ABOUT, lambda: [{"a": np.ones(1)}])["a"].tolist() == [1]
    assert len(stored()) == 2


def test_nothing_is_kept_of_arrays_that_could_not_be_made():
    def broken():
        yield {"a": np.arange(3)}
        raise DataError("no more")

    with pytest.raises(DataError, match="no more"):
        kept_arrays("key", ABOUT, broken)
    assert not stored()
    assert kept_arrays("key", ABOUT, parts)["b"].tolist() == [7, 8]


@pytest.mark.parametrize("name", ["features.json", "a.npy"])
def test_damaged_arrays_are_made_again(name):
    kept_arrays("key", ABOUT, parts)
    (features_folder() / "key" / name).write_bytes(b"{}")
    assert kept_arrays("key", ABOUT, parts)["a"].tolist() == [0, 1, 2, 0, 1]


def test_a_cache_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "features").write_text("a file")
    with pytest.raises(DataError, match=r"cannot write .*features.*; features are kept in \$ONION_HOME"):
        kept_arrays("key", ABOUT, parts)
