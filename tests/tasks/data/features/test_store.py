import json
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from onion.errors import DataError
from onion.tasks.data.features.store import MANIFEST, about_store, open_store, write_store


def example(row, *ids):
    return {"row": row, "ids": np.array(ids, np.int64), "label": row * 2, "spans": np.ones((len(ids), 2), np.int64)}


@pytest.fixture
def folder(tmp_path):
    notes = Counter({"texts cut": 3})
    write_store(tmp_path, iter([[example(0, 1, 2)], [], [example(1), example(2, 3)]]), notes)
    return tmp_path


def test_what_was_written_comes_back_mapped(folder):
    found = open_store(folder)
    assert [(each["place"], each["row"], each["label"]) for each in found] == [(0, 0, 0), (1, 1, 2), (2, 2, 4)]
    assert [each["ids"].tolist() for each in found] == [[1, 2], [], [3]]
    assert [each["spans"].shape for each in found] == [(2, 2), (0, 2), (1, 2)]
    assert found.notes == {"texts cut": 3}
    for column in found.columns.values():
        for array in (column.values, column.starts):
            assert array is None or (type(array) is np.ndarray and isinstance(array.base, np.memmap))


def test_columns_without_any_value(tmp_path):
    write_store(tmp_path, [[{"row": 0, "ids": np.empty(0, np.int64)}]], Counter())
    assert open_store(tmp_path)[0]["ids"].tolist() == []


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def zero(path):
    """As after a power cut on some file systems: the length is right, the content is not."""
    data = path.read_bytes()
    path.write_bytes(data[:128] + bytes(len(data) - 128))


def edited(**values):
    """Change entries of the manifest; ``...`` removes one."""

    def harm(path):
        manifest = json.loads(path.read_text()) | values
        path.write_text(json.dumps({name: value for name, value in manifest.items() if value is not ...}))

    return harm


HARMS = [
    *product(["ids.npy", "ids.starts.npy", "label.npy"], [cut, zero, Path.unlink]),
    *product([MANIFEST], [cut, Path.unlink, edited(format=99), edited(notes=...), edited(notes=[1])]),
    *product([MANIFEST], [edited(fields=value) for value in (..., {}, ["ids"], None)]),
    (MANIFEST, lambda path: path.write_text("[" * 100_000)),
    (MANIFEST, lambda path: path.write_text("[]")),
]


@pytest.mark.parametrize(("name", "harm"), HARMS)
def test_a_store_that_is_not_as_it_was_written_is_none(folder, name, harm):
    harm(folder / name)
    assert open_store(folder) is None
    assert open_store(folder / "nowhere") is None


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ({"a": 1}, {"a": 0.5}, "the field 'a' differs in type or axes between examples"),
        ({"a": 1}, {}, "all examples must have the same fields; some have row, ids"),
        ({"a": np.zeros((1, 2, 2))}, {}, "the field 'a' has 3 axes; at most 2 can be stored"),
    ],
)
def test_examples_that_cannot_be_stored_are_refused(tmp_path, first, second, told):
    chunks = [[{"row": row, "ids": np.array([1]), **fields}] for row, fields in enumerate((first, second))]
    with pytest.raises(DataError, match=told):
        write_store(tmp_path, chunks, Counter())


def test_what_a_store_is_of(tmp_path):
    for name, about in (("a", {"task": "token-classification", "file": "中.tsv"}), ("b", None)):
        (tmp_path / name).mkdir()
        write_store(tmp_path / name, [[{"row": 0, "ids": np.array([1])}]], Counter(), about)
        assert about_store(tmp_path / name) == (about or {})
        assert open_store(tmp_path / name) is not None
    for content in (b"", b"[]", b'{"about": 5}', b"{}", b"\xff"):
        (tmp_path / "a" / MANIFEST).write_bytes(content)
        assert about_store(tmp_path / "a") == {}
