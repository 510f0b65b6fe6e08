"""StreamPosition: what was read, saved and restored; DeadLetters: samples that could not be used."""

import errno

import pytest

from onion import CheckpointError
from onion.checkpointing.atomic_files import Files, through
from onion.online.sources.source import Sample
from onion.online.stream import stream_position
from onion.online.stream.batch_assembler import AssembledBatch, RejectedSample
from onion.online.stream.stream_position import DeadLetters, StreamPosition
from tests.online.toys import rows_in


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rejected.jsonl"


@pytest.fixture
def file(path):
    file = DeadLetters()
    file.open(path)
    return file


def counted(path):
    progress = StreamPosition()
    progress.dead_letters.open(path)
    progress.add(AssembledBatch(["a", "b"], 2, [], "2"))
    progress.add(AssembledBatch(["d"], 1, [bad("c", "3")], "4"))
    progress.batches = 2
    return progress


def bad(data, position="1"):
    return RejectedSample(Sample(data, position), "ValueError: no")


def test_it_advances_past_assembled_batches(path):
    progress = counted(path)
    assert (progress.position, progress.samples, progress.in_pass, progress.dead_letters.count) == ("4", 3, 3, 1)


def test_what_is_saved_is_restored(path):
    progress = counted(path)
    progress.in_pass = 1
    saved = progress.state_dict()
    assert saved == {
        "position": "4",
        "batches": 2,
        "samples": 3,
        "in_pass": 1,
        "rejected": 1,
        "rejected_bytes": path.stat().st_size,
    }
    again = StreamPosition.of({**saved, "like": "null"})
    assert again.state_dict() == saved
    again.dead_letters.open(path)
    again.add(AssembledBatch(["e"], 1, [], "5"))
    assert (again.position, again.samples, again.in_pass) == ("5", 4, 2)
    assert progress.position == "4"


def test_a_new_one_is_at_the_beginning():
    saved = StreamPosition.of(StreamPosition().state_dict()).state_dict()
    assert saved == {**dict.fromkeys(saved, 0), "position": ""}


def test_a_row_has_position_reason_and_sample(file):
    file.add([bad({"text": "名"}, "7"), bad([1])])
    assert rows_in(file.path) == [
        {"position": "7", "reason": "ValueError: no", "sample": {"text": "名"}},
        {"position": "1", "reason": "ValueError: no", "sample": [1]},
    ]
    assert (file.count, file.offset) == (2, file.path.stat().st_size)


def test_nothing_rejected_makes_no_file(file):
    file.add([])
    file.settle()
    assert not file.path.exists()


def test_rows_behind_the_offset_are_removed(file):
    file.add([bad(1)])
    resumed = DeadLetters()
    resumed.offset, resumed.count = file.offset, 1
    file.add([bad(2)])
    resumed.open(file.path)
    resumed.add([bad(3)])
    assert [row["sample"] for row in rows_in(file.path)] == [1, 3]


def test_long_samples_are_truncated_and_any_sample_can_be_written(file):
    file.add([bad("x" * 50_000), bad("\ud800"), bad({"a": {1, 2}})])
    long, lone, strange = (row["sample"] for row in rows_in(file.path))
    assert (len(long), lone, strange) == (10_000, "?", {"a": "{1, 2}"})


def test_a_large_file_stops_growing(file, monkeypatch):
    monkeypatch.setattr(stream_position, "MAX_BYTES", 100)
    for _ in range(9):
        file.add([bad(1)])
    assert (file.count, len(rows_in(file.path))) == (9, 2)


def test_without_a_path_they_are_counted():
    file = DeadLetters()
    file.add([bad(1)])
    file.settle()
    assert file.count == 1


class Full(Files):
    def write(self, file, content):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_an_error(file):
    with through(Full()), pytest.raises(CheckpointError, match=r"rejected.jsonl: No space left"):
        file.add([bad(1)])
