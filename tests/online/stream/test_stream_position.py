"""StreamPosition: what was read, saved and restored; DeadLetters: samples that could not be used."""

import errno
import json

import pytest

from onion import CheckpointError
from onion.checkpointing.atomic_files import Files, through
from onion.online.sources.source import Sample
from onion.online.stream import stream_position
from onion.online.stream.batch_assembler import AssembledBatch, RejectedSample
from onion.online.stream.stream_position import DeadLetters, StreamPosition


def counted(folder):
    progress = StreamPosition()
    progress.dead_letters.open(folder / "rejected.jsonl")
    progress.add(AssembledBatch(["a", "b"], 2, [], "2"))
    progress.add(AssembledBatch(["d"], 1, [RejectedSample(Sample("c", "3"), "ValueError: no")], "4"))
    progress.batches = 2
    return progress


def test_it_counts_and_is_behind_all_that_was_taken(tmp_path):
    progress = counted(tmp_path)
    assert (progress.position, progress.samples, progress.in_pass, progress.dead_letters.count) == ("4", 3, 3, 1)


def test_what_it_saves_is_what_comes_back(tmp_path):
    progress = counted(tmp_path)
    progress.in_pass = 1
    saved = progress.state_dict()
    assert saved == {
        "position": "4",
        "batches": 2,
        "samples": 3,
        "in_pass": 1,
        "rejected": 1,
        "rejected_bytes": (tmp_path / "rejected.jsonl").stat().st_size,
    }
    again = StreamPosition.of({**saved, "like": "null"})
    assert again.state_dict() == saved
    again.dead_letters.open(tmp_path / "rejected.jsonl")
    again.add(AssembledBatch(["e"], 1, [], "5"))
    assert (again.position, again.samples, again.in_pass) == ("5", 4, 2)
    assert progress.position == "4"


def test_a_new_one_is_at_the_beginning():
    progress = StreamPosition.of(StreamPosition().state_dict())
    assert (progress.position, progress.batches, progress.samples, progress.in_pass, progress.dead_letters.count) == (
        "",
        0,
        0,
        0,
        0,
    )


def bad(data, position="1"):
    return RejectedSample(Sample(data, position), "ValueError: no")


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_row_tells_place_reason_and_sample(tmp_path):
    file = DeadLetters()
    file.open(tmp_path / "rejected.jsonl")
    file.add([bad({"text": "名"}, "7"), bad([1])])
    assert rows(file.path) == [
        {"position": "7", "reason": "ValueError: no", "sample": {"text": "名"}},
        {"position": "1", "reason": "ValueError: no", "sample": [1]},
    ]
    assert (file.count, file.offset) == (2, file.path.stat().st_size)


def test_nothing_rejected_makes_no_file(tmp_path):
    file = DeadLetters()
    file.open(tmp_path / "rejected.jsonl")
    file.add([])
    file.settle()
    assert not file.path.exists()


def test_rows_behind_the_offset_are_cut_off(tmp_path):
    path = tmp_path / "rejected.jsonl"
    first = DeadLetters()
    first.open(path)
    first.add([bad(1)])
    second = DeadLetters()
    second.offset, second.count = first.offset, 1
    first.add([bad(2)])
    second.open(path)
    second.add([bad(3)])
    assert [row["sample"] for row in rows(path)] == [1, 3]


def test_a_long_sample_is_told_in_part_and_a_lone_surrogate_does_no_harm(tmp_path):
    file = DeadLetters()
    file.open(tmp_path / "rejected.jsonl")
    file.add([bad("x" * 50_000), bad("\ud800"), bad({"a": {1, 2}})])
    long, lone, strange = rows(file.path)
    assert len(long["sample"]) == 10_000
    assert lone["sample"] == "?"
    assert strange["sample"] == {"a": "{1, 2}"}


def test_a_file_that_is_large_enough_grows_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(stream_position, "MAX_BYTES", 100)
    file = DeadLetters()
    file.open(tmp_path / "rejected.jsonl")
    for _ in range(9):
        file.add([bad(1)])
    assert file.count == 9
    assert len(rows(file.path)) == 2


def test_without_a_path_they_are_counted():
    file = DeadLetters()
    file.add([bad(1)])
    file.settle()
    assert file.count == 1


class Full(Files):
    def write(self, file, content):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_said(tmp_path):
    file = DeadLetters()
    file.open(tmp_path / "rejected.jsonl")
    with through(Full()), pytest.raises(CheckpointError, match=r"rejected.jsonl: No space left"):
        file.add([bad(1)])
