import hashlib
import os

import pytest

from onion.tasks.data.features import hashing
from onion.tasks.data.features.hashing import digest_of_file, digest_of_values

LONG_AGO = 1_000_000_000_000_000_000


@pytest.fixture
def read(monkeypatch):
    """The files that are read as a whole, in order."""
    names, read = [], hashing._sum
    monkeypatch.setattr(hashing, "_sum", lambda file: names.append(file.name) or read(file))
    return names


def rested(path, content):
    path.write_bytes(content)
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    return path


def test_a_file_that_rests_is_read_once(tmp_path, read):
    path = rested(tmp_path / "a", b"content")
    assert digest_of_file(path) == digest_of_file(str(path)) == hashlib.sha256(b"content").hexdigest()
    assert len(read) == 1


def test_a_file_that_was_just_written_is_read_again(tmp_path, read):
    (tmp_path / "a").write_bytes(b"content")
    assert digest_of_file(tmp_path / "a") == digest_of_file(tmp_path / "a")
    assert len(read) == 2


def test_other_content_of_the_same_size_and_age_is_seen(tmp_path):
    path = rested(tmp_path / "a", b"content")
    before = digest_of_file(path)
    rested(path, b"CONTENT")
    assert digest_of_file(path) == hashlib.sha256(b"CONTENT").hexdigest() != before


def test_a_file_that_changes_while_it_is_read_is_not_remembered(tmp_path, monkeypatch):
    path = rested(tmp_path / "a", b"content")
    read = hashing._sum

    def growing(file):
        found = read(file)
        rested(path, b"CONTENT")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(hashing, "_sum", growing)
        digest_of_file(path)
    assert digest_of_file(path) == hashlib.sha256(b"CONTENT").hexdigest()


def test_a_long_file(tmp_path):
    content = bytes(range(256)) * (hashing.PIECE // 256) + b"more"
    assert digest_of_file(rested(tmp_path / "a", content)) == hashlib.sha256(content).hexdigest()


def test_values_in_whatever_order():
    assert digest_of_values({"a": 1, "b": [2]}) == digest_of_values({"b": [2], "a": 1}) != digest_of_values({"a": 1})
