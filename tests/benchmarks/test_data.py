"""benchmarks/data: no time without equal ids; what is told follows from what was measured; our own sides run."""

import time
from pathlib import Path

import pytest

from benchmarks.common.sides import Side, all_ready
from benchmarks.data import by_onion, cached, training
from benchmarks.data import figures as told
from benchmarks.data.sets import Set
from onion.engine.timing import Timing
from onion.models.tokenizer import Tokenizer
from tests.tasks.helpers import VOCAB, films, tiny_encoder, write_tsv


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A small fine-tuning, and texts."""
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    train, dev = (write_tsv(tmp_path / f"{name}.tsv", films(70, seed)) for seed, name in enumerate(("train", "dev")))
    return {
        "train": str(train),
        "dev": str(dev),
        "file": str(train),
        "encoder": str(tiny_encoder(tmp_path / "tiny")),
        "tokenizer": str(tmp_path / "tiny"),
        "max_length": 8,
        "batch_size": 16,
        "lr": 1e-3,
        "seed": 1,
        "options": {"max_length": 8},
        "threads": 1,
        "begun": time.time(),
    }


def texts(features, tokenizer):
    return {"features": features, "tokenizer": tokenizer}


ROUNDS = [{told.ONION: texts(30, 60), told.PEER: texts(8, 10)}, {told.ONION: texts(40, 50), told.PEER: texts(10, 20)}]


def test_onion_reads_files_against_the_peer_that_does_not():
    *figures, files, alone = told.of_texts("SST-2", ROUNDS)
    assert [figure.values for figure in figures] == [[30, 40], [60, 50], [8, 10], [10, 20]]
    assert (files.values, alone.values) == ([3.0, 2.0], [6.0, 2.5])
    assert files.met
    assert alone.met


def test_no_times_where_ids_differ():
    same = {side: {"features digest": "a", "tokenizer digest": "a"} for side in (told.ONION, told.PEER)}
    told.refuse_difference("SST-2", same)
    same[told.PEER]["tokenizer digest"] = "b"
    with pytest.raises(SystemExit, match="SST-2: the sides found different ids"):
        told.refuse_difference("SST-2", same)


def test_trainings_are_told_side_by_side():
    rounds = [{told.ONION: {"steps": 9, "waits": 0.0002}, told.PEER: {"steps": 9}}]
    waits, *peaks = told.of_training(rounds, [{told.ONION: 2_000_000, told.PEER: 3_000_000}])
    assert (waits.median, waits.met) == (pytest.approx(0.02), True)
    assert [peak.median for peak in peaks] == [2.0, 3.0]
    rounds[0][told.PEER]["steps"] = 8
    with pytest.raises(SystemExit, match="different numbers of steps"):
        list(told.of_training(rounds, [{told.ONION: 1, told.PEER: 1}]))


def test_starts_and_the_cache_have_their_goals():
    rounds = [{told.ONION: {"first": 2.0, "tokens": 9e5}, told.PEER: {"first": 5.0}}]
    assert [figure.met for figure in told.of_starts(rounds, [0.1, 0.4, 0.2])] == [True, None, None]
    assert told.of_cache(rounds).met is False


def test_waits_are_the_time_between_batches():
    timing = Timing()
    for slot, way_in, way_out in (
        (("next batch", "on_batch"), 10, 0),
        (("gradient_machine", "on_batch"), 60, 30),
        (("saver", "on_pass"), 999, 999),
    ):
        timing._loss(slot).way_in, timing._loss(slot).way_out = way_in, way_out
    assert training.share_of_waits(timing) == pytest.approx(0.1)


def test_a_vocabulary_becomes_a_folder_that_both_sides_read(tmp_path):
    (tmp_path / "data" / "vocab").mkdir(parents=True)
    (tmp_path / "data" / "vocab" / "vocab.txt").write_text("\n".join(VOCAB), encoding="utf-8")
    folder = Set("small", "train.tsv", "vocab").tokenizer(tmp_path / "data", tmp_path)
    assert (folder / "tokenizer.json").is_file()
    assert Tokenizer.from_pretrained(folder).settings["tokenizer_class"] == "BertTokenizerFast"


def test_our_texts_have_one_digest_both_ways(job):
    found = by_onion.prepare(job)(digest=True)
    assert found["features digest"] == found["tokenizer digest"]
    assert min(found["features"], found["tokenizer"]) > 0
    assert "tokenizer digest" not in by_onion.prepare(job)()


def test_the_cache_is_read_through_the_provider_of_a_training(job):
    assert cached.prepare(job)()["tokens"] > 0


def test_a_pass_that_lacks_an_example_has_no_time(job, monkeypatch):
    monkeypatch.setattr(cached.Count, "on_batch", lambda self, state: None)
    with pytest.raises(SystemExit, match="not bring every example once"):
        cached.prepare(job)()


def test_a_training_in_a_process_of_its_own(job):
    side = Side("onion", "benchmarks.data.training", job)
    with all_ready([side]):
        found = side.round(steps=3)
    assert found["steps"] == 3
    assert found["first"] > 0
    assert 0 < found["waits"] < 1
    assert side.last["peak_bytes"] > 0
    assert not list(Path(job["train"]).parent.glob("step-*"))
