import json

import pytest

from onion.errors import DataError
from onion.tasks.data.features.cached_value import kept


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "features"


def refuse():
    raise AssertionError("made again")


VALUE = {"labels": ["中", "b"], "pairs": None, "share": 0.1}


def test_a_value_is_made_once_a_key(folder):
    assert kept("a.tsv", lambda: "key", lambda: VALUE) == VALUE
    assert kept("a.tsv", lambda: "key", refuse) == VALUE
    assert kept("a.tsv", lambda: "other", lambda: 5) == 5
    assert sorted(path.name for path in folder.iterdir()) == ["key.json", "other.json"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"value": 1}', b'{"value": 1, "sum": 1}', b"\xff", b"[" * 9999]
)
def test_what_is_not_as_it_was_written_is_made_anew(folder, content):
    kept("a.tsv", lambda: "key", lambda: VALUE)
    (folder / "key.json").write_bytes(content)
    assert kept("a.tsv", lambda: "key", lambda: 7) == 7
    assert kept("a.tsv", lambda: "key", refuse) == 7


def test_a_value_that_was_tampered_with(folder):
    kept("a.tsv", lambda: "key", lambda: VALUE)
    record = json.loads((folder / "key.json").read_text())
    record["value"]["labels"].reverse()
    (folder / "key.json").write_text(json.dumps(record))
    assert kept("a.tsv", lambda: "key", lambda: VALUE) == VALUE


def test_a_file_that_changed_meanwhile(folder):
    keys = iter("ab")
    with pytest.raises(DataError, match=r"a\.tsv: changed while it was read .*; start again"):
        kept("a.tsv", lambda: next(keys), lambda: VALUE)
    assert not folder.exists()


def test_a_place_where_nothing_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"cannot write .*key\.json: .*\$ONION_HOME"):
        kept("a.tsv", lambda: "key", lambda: VALUE)
