import json
from collections import Counter

import numpy as np
import pytest

from onion.tasks.features.store import MANIFEST, open_store, write_store


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
    assert isinstance(found.columns["ids"].values, np.memmap)


def test_columns_without_any_value(tmp_path):
    write_store(tmp_path, [[{"row": 0, "ids": np.empty(0, np.int64)}]], Counter())
    assert open_store(tmp_path)[0]["ids"].tolist() == []


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def change(path):
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "format": 99}))


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        (MANIFEST, cut),
        (MANIFEST, change),
        (MANIFEST, lambda path: path.unlink()),
        (MANIFEST, lambda path: path.write_text("[]")),
        ("ids.npy", cut),
        ("ids.starts.npy", cut),
        ("label.npy", lambda path: path.unlink()),
    ],
)
def test_a_store_that_is_not_as_it_was_written_is_none(folder, name, harm):
    harm(folder / name)
    assert open_store(folder) is None
    assert open_store(folder / "nowhere") is None
