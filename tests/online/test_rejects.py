"""The file of rejected samples."""

import errno
import json

import pytest

from onion import CheckpointError
from onion.checkpointing.atomic_files import Files, through
from onion.online import rejects
from onion.online.gathering import Rejected
from onion.online.rejects import Rejects
from onion.online.source import Sample


def bad(data, position="1"):
    return Rejected(Sample(data, position), "ValueError: no")


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_row_tells_place_reason_and_sample(tmp_path):
    file = Rejects()
    file.open(tmp_path / "rejected.jsonl")
    file.add([bad({"text": "名"}, "7"), bad([1])])
    assert rows(file.path) == [
        {"position": "7", "reason": "ValueError: no", "sample": {"text": "名"}},
        {"position": "1", "reason": "ValueError: no", "sample": [1]},
    ]
    assert (file.count, file.offset) == (2, file.path.stat().st_size)


def test_nothing_rejected_makes_no_file(tmp_path):
    file = Rejects()
    file.open(tmp_path / "rejected.jsonl")
    file.add([])
    file.settle()
    assert not file.path.exists()


def test_rows_behind_the_offset_are_cut_off(tmp_path):
    path = tmp_path / "rejected.jsonl"
    first = Rejects()
    first.open(path)
    first.add([bad(1)])
    second = Rejects()
    second.offset, second.count = first.offset, 1
    first.add([bad(2)])
    second.open(path)
    second.add([bad(3)])
    assert [row["sample"] for row in rows(path)] == [1, 3]


def test_a_long_sample_is_told_in_part_and_a_lone_surrogate_does_no_harm(tmp_path):
    file = Rejects()
    file.open(tmp_path / "rejected.jsonl")
    file.add([bad("x" * 50_000), bad("\ud800"), bad({"a": {1, 2}})])
    long, lone, strange = rows(file.path)
    assert len(long["sample"]) == 10_000
    assert lone["sample"] == "?"
    assert strange["sample"] == {"a": "{1, 2}"}


def test_a_file_that_is_large_enough_grows_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(rejects, "LARGEST", 100)
    file = Rejects()
    file.open(tmp_path / "rejected.jsonl")
    for _ in range(9):
        file.add([bad(1)])
    assert file.count == 9
    assert len(rows(file.path)) == 2


def test_without_a_path_they_are_counted():
    file = Rejects()
    file.add([bad(1)])
    file.settle()
    assert file.count == 1


class Full(Files):
    def write(self, file, content):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_said(tmp_path):
    file = Rejects()
    file.open(tmp_path / "rejected.jsonl")
    with through(Full()), pytest.raises(CheckpointError, match=r"rejected.jsonl: No space left"):
        file.add([bad(1)])
