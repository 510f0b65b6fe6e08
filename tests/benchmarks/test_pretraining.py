"""benchmarks/pretraining: all sides are given the same; what is told of the rounds; our own side trains."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.frame.processes import all_ready
from benchmarks.pretraining import __main__ as pretraining
from benchmarks.pretraining import material, onion_engine, rows
from onion.models.weights import read_weights
from onion.tasks.pretraining.corpus.ernie_lines import write_samples
from tests.tasks.helpers import VOCAB
from tests.tasks.pretraining.samples import sample

SHAPE = material.SHAPE.changed(
    vocab_size=len(VOCAB), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
)


@pytest.fixture(scope="module")
def samples():
    chance = np.random.default_rng(1)

    def units():
        words = range(chance.integers(1, 6))
        return [chance.integers(5, len(VOCAB), chance.integers(1, 4)).tolist() for _ in words]

    return [sample(units(), units(), label=int(chance.integers(2))) for _ in range(170)]


@pytest.fixture(scope="module")
def job(samples, tmp_path_factory):
    room = tmp_path_factory.mktemp("room")
    (room / "vocabulary").mkdir()
    (room / "vocabulary" / "vocab.txt").write_text("".join(f"{word}\n" for word in VOCAB), encoding="utf-8")
    write_samples(room / "lines.gz", samples)
    return material.job(room, room / "lines.gz", room / "vocabulary", 4, SHAPE)


def test_rows_are_read_as_they_were_written(job, samples):
    found = rows.read_rows(job["rows"])
    assert len(found) == 4 * job["batch_size"]
    assert job["tokens"] == sum(len(row["ids"]) for row in found)
    for row, each in zip(found, samples, strict=False):
        assert (row["ids"].tolist(), row["types"].tolist()) == (each.ids.tolist(), each.sentences.tolist())
        assert (row["units"].tolist(), row["label"]) == (each.units.tolist(), each.label)


def test_given_batches_have_masks_and_what_stood_there(job, samples):
    batches = rows.read_batches(job["few"])
    assert len(batches) == material.FEW
    ids = np.concatenate(
        [np.where(each["words"] == rows.IGNORED, each["ids"], each["words"])[each["mask"] == 1] for each in batches]
    )
    given = samples[: material.FEW * job["batch_size"]]
    assert ids.tolist() == np.concatenate([each.ids for each in given]).tolist()
    taken = onion_engine.of_given(batches[0])
    at = taken["input_ids"].reshape(-1)[taken["masked_positions"]]
    assert len(at) == len(taken["word_labels"]) > 0
    assert taken["lengths"] == [len(each.ids) for each in samples[: job["batch_size"]]]


def test_too_few_rows_are_refused(samples, tmp_path):
    write_samples(tmp_path / "lines.gz", samples)
    with pytest.raises(ValueError, match="170 rows, too few for 6 batches of 32; ask for fewer steps"):
        material.job(tmp_path, tmp_path / "lines.gz", tmp_path, 6, SHAPE)


def test_each_layout_has_the_same_weights(job):
    arrays = [read_weights(Path(job[name])).arrays for name in ("bert", "bert still", "ernie", "ernie still")]
    for other in arrays[1:]:
        assert all(np.array_equal(other[name], arrays[0][name]) for name in arrays[0])


def test_our_next_sentence_head_is_that_of_the_folder(job):
    heads = read_weights(Path(job["bert"])).heads
    network = onion_engine.network_of(job["bert"])
    assert np.array_equal(network.classifier.weight.numpy(), heads["cls.seq_relationship.weight"])


def test_our_sides_train_in_processes_of_their_own(job):
    sides = pretraining.sides_of(job, 4, [])
    assert [side.name for side in sides] == [pretraining.ONION, pretraining.BY_TOKENS]
    with all_ready(sides):
        costs = {side.name: side.round(ask="costs")["costs"] for side in sides}
        found = {side.name: side.round(ask="train") for side in sides}
    assert costs[pretraining.ONION] == costs[pretraining.BY_TOKENS]
    assert len(costs[pretraining.ONION]) == material.FEW
    assert all(each["seconds"] > 0 and 0 < each["last_cost"] < 10 for each in found.values())
    assert pretraining.costs_of([found]).startswith("onion ")


def test_ratios_are_of_onion_by_tokens():
    seconds = {pretraining.ONION: 2.0, pretraining.BY_TOKENS: 1.0, pretraining.TRANSFORMERS: 2.5}
    rounds = [{side: {"seconds": each} for side, each in seconds.items()}]
    figures = pretraining.of_speed(rounds, 100, pretraining.GOALS)
    told = [(each.what, list(each.values), each.met) for each in figures]
    assert told == [
        ("onion", [50.0], None),
        ("onion by tokens beside it", [2.0], None),
        ("onion, batches by tokens", [100.0], None),
        ("Hugging Face Trainer", [40.0], None),
        ("onion by tokens beside it", [2.5], False),
    ]
