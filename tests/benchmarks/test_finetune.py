"""benchmarks/finetune: no time of sides that differ; what is told of the rounds; our own side trains."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.finetune import __main__ as finetune
from benchmarks.finetune import onion_engine, work
from benchmarks.frame.processes import FailedError, Side, all_ready
from onion.models.config import EncoderConfig
from onion.models.tokenizer import Tokenizer
from onion.models.weights import read_weights
from tests.tasks.helpers import HIDDEN, VOCAB, films, tiny_encoder, write_tsv

ROWS = 5


@pytest.fixture
def data(tmp_path):
    """A folder of data sets with one file, of 160 rows."""
    return write_tsv(tmp_path / "films.tsv", films(160, 1, good="1", bad="0")).parent


@pytest.fixture
def part(tmp_path):
    """A training of a tiny encoder, with a head on a file."""

    def model(room, data):
        Tokenizer.from_pretrained(tiny_encoder(room / "tiny")).save_pretrained(room / "tiny")
        weight = np.random.default_rng(1).normal(0, 0.1, (HIDDEN, work.CLASSES)).astype(np.float32)
        np.savez(room / "head.npz", weight=weight, bias=np.zeros(2, np.float32))
        return {"folder": str(room / "tiny"), "head": str(room / "head.npz"), "max_length": 12}

    return finetune.Part("films", "films.tsv", model, 3)


@pytest.mark.parametrize("ending", ["\n", ""])
def test_the_first_rows_of_a_file_come_with_what_stands_above_them(tmp_path, ending):
    file = tmp_path / "all.tsv"
    file.write_bytes(("text_a\tlabel\n" + "\n".join(f"row {row}\t0" for row in range(ROWS)) + ending).encode())
    found = finetune.head_of(file, 2, tmp_path / "some.tsv")
    assert found.read_bytes() == b"text_a\tlabel\nrow 0\t0\nrow 1\t0\n"
    assert finetune.head_of(file, ROWS, found).read_bytes().count(b"\n") == ROWS + 1
    with pytest.raises(ValueError, match="fewer than 6 rows"):
        finetune.head_of(file, ROWS + 1, found)


def test_rows_that_one_tokenizer_cuts_differently_are_left_out(tmp_path):
    rows = [("4～6 hours", "0"), ("a + b, 4-6, ～ is one, ² too", "1"), ("plain: $5 + 6^2 = 好！", "0"), ("more", "1")]
    file = write_tsv(tmp_path / "train.tsv", rows)
    assert finetune.head_of(file, 2, tmp_path / "some.tsv").read_text().splitlines()[1:] == [
        "plain: $5 + 6^2 = 好！\t0",
        "more\t1",
    ]


def test_files_are_read_by_columns_of_texts_and_of_pairs(tmp_path):
    texts = write_tsv(tmp_path / "texts.tsv", [("a", "1"), ("b", "0")])
    pairs = write_tsv(tmp_path / "pairs.tsv", [("0", "a", "b")], ("label", "text_a", "text_b"))
    assert work.columns(str(texts)) == (["a", "b"], None, [1, 0])
    assert work.columns(str(pairs)) == (["a"], ["b"], [0])


def test_a_clock_that_is_stopped_does_not_count(monkeypatch):
    moments = iter([10.0, 11.0, 15.0, 17.0])
    monkeypatch.setattr(work.time, "perf_counter", lambda: next(moments))
    clock = work.Clock()
    with clock.stopped():
        pass
    assert clock.seconds() == 3.0


def test_each_side_reads_the_same_model_and_its_twin_without_dropout(part, data, tmp_path):
    job = json.loads(json.dumps(part.job(tmp_path, data, 2)))
    for folder, dropout in (("folder", 0.1), ("still", 0.0), ("paddlenlp", 0.1), ("paddlenlp still", 0.0)):
        config = EncoderConfig.read(job[folder])
        assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (dropout, dropout), folder
        arrays, own = (read_weights(Path(job[name])).arrays for name in (folder, "folder"))
        assert all(np.array_equal(arrays[name], own[name]) for name in own), folder
    assert (Path(job["paddlenlp"]) / "vocab.txt").read_text(encoding="utf-8").split() == VOCAB


def test_the_products_are_those_of_a_layer():
    assert onion_engine.shapes(2, 8) == [(2, 2), (2, 2), (2, 2), (2, 2), (2, 8), (8, 2)]
    found = [product().shape for product in onion_engine.products_of(5, 2, 8)]
    assert found == [[5, 8], [5, 2], [2, 8]]


def test_costs_that_differ_are_refused_and_others_told():
    losses = {"onion": [0.5, 0.25], finetune.GROUPED: [0.5, 0.25 + 2**-11]}
    assert finetune.differences(losses) == {finetune.GROUPED: 2**-11}
    for wrong in ([0.5, 0.252], [0.5], [], [0.5, float("nan")]):
        with pytest.raises(FailedError, match="grouped by length does not do onion's work"):
            finetune.differences(losses | {finetune.GROUPED: wrong})


def trained(seconds, steps=2):
    return {"seconds": seconds, "steps": steps}


def test_speeds_are_told_and_beside_onion_for_equal_numbers_of_updates():
    rounds = [
        {finetune.TRANSFORMERS: trained(8.0), "onion": trained(4.0)},
        {"onion": trained(2.0), finetune.TRANSFORMERS: trained(3.0)},
    ]
    told = [
        (each.what, list(each.values), each.met) for each in finetune.of_speed(rounds, "films", 64, 2, finetune.GOALS)
    ]
    assert told == [
        ("films: onion", [16.0, 32.0], None),
        ("films: Hugging Face Trainer", [8.0, 64 / 3], None),
        ("onion beside it", [2.0, 1.5], False),
    ]
    with pytest.raises(FailedError, match="films: onion made 3 updates, not 2"):
        finetune.of_speed([{"onion": trained(1.0, 3)}], "films", 64, 2, finetune.GOALS)


def test_the_share_is_of_a_step_and_one_step_is_no_training(capsys):
    rounds = [{"onion": {"products": 0.25, "step": 0.5}}, {"onion": {"products": 0.75, "step": 1.0}}]
    assert finetune.of_share(rounds, "films").cells()[3] == "at least 0.6: met"
    with pytest.raises(SystemExit):
        finetune.main(["--steps", "1"])
    assert "--steps: must be at least 2" in capsys.readouterr().err


def test_our_side_trains_in_a_process_of_its_own(part, data, tmp_path):
    job = {**part.job(tmp_path, data, 3), "engine": "onion"}
    side = Side("onion", "benchmarks.finetune.work", job)
    with all_ready([side]):
        losses, again = (side.round(ask="costs")["costs"] for _ in range(2))
        found = side.round(ask="train")
    assert len(losses) == finetune.FEW
    assert losses == pytest.approx(again, abs=1e-5)
    assert losses[0] == pytest.approx(np.log(2), abs=0.5)
    assert found["steps"] == 3
    assert 0 < found["step"] < found["seconds"]
    assert found["products"] > 0
    assert side.last["peak_bytes"] > 0
