"""benchmarks/data: no time without equal ids; what is told follows from what was measured; our own sides run."""

import time
from pathlib import Path

import pytest

from benchmarks.data import __main__ as data
from benchmarks.data import onion_sides
from benchmarks.frame.processes import Side
from onion.engine.timing import Timing
from onion.models.tokenizer import Tokenizer
from tests.tasks.helpers import VOCAB, films, tiny_encoder, write_tsv


@pytest.fixture
def job(tmp_path, monkeypatch):
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


ROUNDS = [
    {data.ONION: {"features": 30, "tokenizer": 60}, data.PEER: {"features": 8, "tokenizer": 10}},
    {data.ONION: {"features": 40, "tokenizer": 50}, data.PEER: {"features": 10, "tokenizer": 20}},
]


def test_figures_are_those_of_the_rounds():
    *figures, files, alone = data.of_texts("SST-2", ROUNDS)
    assert [figure.values for figure in figures] == [[30, 40], [60, 50], [8, 10], [10, 20]]
    assert (files.values, alone.values) == ([3.0, 2.0], [6.0, 2.5])
    assert files.met
    assert alone.met
    rounds = [{data.ONION: {"steps": 9, "waits": 0.0002}, data.PEER: {"steps": 9}}]
    waits, *peaks = data.of_training(rounds, [{data.ONION: 2_000_000, data.PEER: 3_000_000}])
    assert (waits.median, waits.met) == (pytest.approx(0.02), True)
    assert [peak.median for peak in peaks] == [2.0, 3.0]
    rounds[0][data.PEER]["steps"] = 8
    with pytest.raises(SystemExit, match="different numbers of steps"):
        list(data.of_training(rounds, [{data.ONION: 1, data.PEER: 1}]))
    rounds = [{data.ONION: {"first": 2.0, "tokens": 9e5}, data.PEER: {"first": 5.0}}]
    assert [figure.met for figure in data.of_starts(rounds, [0.1, 0.4, 0.2])] == [True, None, None]
    assert data.of_cache(rounds).met is False


def test_no_times_where_ids_differ():
    same = {side: {"features digest": "a", "tokenizer digest": "a"} for side in (data.ONION, data.PEER)}
    data.require_equal_ids("SST-2", same)
    same[data.PEER]["tokenizer digest"] = "b"
    with pytest.raises(SystemExit, match="SST-2: the sides found different ids"):
        data.require_equal_ids("SST-2", same)


def test_waits_are_the_time_between_batches():
    timing = Timing()
    for slot, way_in, way_out in (
        (("next batch", "on_batch"), 10, 0),
        (("gradient_machine", "on_batch"), 60, 30),
        (("saver", "on_pass"), 999, 999),
    ):
        timing._cost(slot).way_in, timing._cost(slot).way_out = way_in, way_out
    assert onion_sides.share_of_waits(timing) == pytest.approx(0.1)


def test_a_vocabulary_becomes_a_folder_that_both_sides_read(tmp_path):
    (tmp_path / "data" / "vocab").mkdir(parents=True)
    (tmp_path / "data" / "vocab" / "vocab.txt").write_text("\n".join(VOCAB), encoding="utf-8")
    folder = data.Set("small", "train.tsv", "vocab").tokenizer(tmp_path / "data", tmp_path)
    assert (folder / "tokenizer.json").is_file()
    assert Tokenizer.from_pretrained(folder).settings["tokenizer_class"] == "BertTokenizerFast"


def test_our_texts_have_one_digest_both_ways(job):
    found = onion_sides.texts(job)(digest=True)
    assert found["features digest"] == found["tokenizer digest"]
    assert min(found["features"], found["tokenizer"]) > 0
    assert "tokenizer digest" not in onion_sides.texts(job)()


def test_the_cache_is_read_through_the_provider_of_a_training_and_brings_every_example(job, monkeypatch):
    assert onion_sides.cached(job)()["tokens"] > 0
    monkeypatch.setattr(onion_sides.Count, "on_batch", lambda self, state: None)
    with pytest.raises(SystemExit, match="not bring every example once"):
        onion_sides.cached(job)()


def test_a_training_in_a_process_of_its_own(job):
    side = Side("onion", "benchmarks.data.onion_sides:training", job, stays=False)
    found = side.round(steps=3)
    assert found["steps"] == 3
    assert found["first"] > 0
    assert 0 < found["waits"] < 1
    assert side.last["peak_bytes"] > 0
    assert not list(Path(job["train"]).parent.glob("step-*"))
