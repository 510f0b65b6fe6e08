"""benchmarks/inference: order and padding change nothing; what is told of the rounds; no time of sides that differ."""

import base64

import numpy as np
import pytest

from benchmarks.frame.processes import FailedError, Side, all_ready
from benchmarks.inference import __main__ as inference
from benchmarks.inference import models, work
from benchmarks.inference import onnx_copy as avx2
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder

TEXTS = ["three small words", "a", "two words", ""]


def written(*values):
    return base64.b64encode(np.array(values, "<f4").tobytes()).decode()


def lengths(texts):
    return np.array([[len(text)] for text in texts], np.float32)


@pytest.mark.parametrize("way", ["in_order", "by_length"])
@pytest.mark.parametrize("batch", [1, 3, 64])
def test_results_come_back_in_the_order_of_the_texts(monkeypatch, way, batch):
    monkeypatch.setattr(work, "BATCH", batch)
    assert getattr(work, way)(lengths)(TEXTS).tolist() == [[17], [1], [9], [0]]


def test_short_texts_share_a_batch(monkeypatch):
    monkeypatch.setattr(work, "BATCH", 2)
    given = []
    work.by_length(lambda texts: given.append(list(texts)) or lengths(texts))(TEXTS)
    assert given == [["", "a"], ["two words", "three small words"]]


def test_the_mean_is_over_tokens_and_probabilities_of_large_logits_are_numbers():
    vectors = np.array([[[1.0, 2.0], [3.0, 4.0], [90.0, 90.0]]], np.float32)
    assert work.mean_of(vectors, np.array([[1, 1, 0]])).tolist() == [[2.0, 3.0]]
    assert work.probabilities(np.array([[1000.0, 1000.0], [0.0, 1000.0]])).tolist() == [[0.5, 0.5], [0.0, 1.0]]


def test_sides_that_differ_are_refused_and_others_told():
    results = {
        "onion": {"classify": written(0.5, 0.25)},
        "transformers": {"classify in order": written(0.5, 0.25 + 2**-15)},
        "ONNX Runtime int8": {"classify": written(0.5, 0.5)},
    }
    assert inference.differences(results, ["transformers"]) == {"transformers": 2**-15, "ONNX Runtime int8": 0.25}
    with pytest.raises(FailedError, match=r"int8 computes something else than onion: the numbers differ by 0\.25"):
        inference.differences(results, ["transformers", "ONNX Runtime int8"])
    for wrong in ((0.5,), (0.5, float("nan"))):
        with pytest.raises(FailedError, match="transformers computes something else"):
            inference.differences({**results, "transformers": {"classify": written(*wrong)}}, ["transformers"])


def test_bulk_is_told_in_texts_a_second_and_beside_onion():
    rounds = [
        {"onion": {"classify": 2.0, "tokenise": 0.5}, "transformers": {"classify": 3.0, "classify in order": 6.0}},
        {"onion": {"classify": 4.0, "tokenise": 0.5}, "transformers": {"classify": 6.0, "classify in order": 12.0}},
    ]
    told = [
        (figure.what, list(figure.values), figure.met)
        for figure in inference.of_bulk(rounds, 12, "short", inference.GOALS.bulk)
    ]
    assert told == [
        ("short, classification: onion", [6.0, 3.0], None),
        ("short, classification: transformers, short ones first", [4.0, 2.0], None),
        ("onion beside it", [1.5, 1.5], False),
        ("short, classification: transformers, as they come", [2.0, 1.0], None),
        ("onion beside it", [3.0, 3.0], True),
    ]
    assert [list(figure.values) for figure in inference.of_share(rounds, "short")] == [[25.0, 12.5]]


def test_what_one_text_waits_is_told_in_milliseconds_and_beside_onnx():
    waits = {"classify": [0.001, 0.003, 0.002], "embed": [0.004, 0.004, 0.004]}
    double = {way: [2 * wait for wait in each] for way, each in waits.items()}
    rounds = [{"onion": double, "ONNX Runtime": waits}]
    assert [list(figure.values) for figure in inference.of_singles(rounds, "short")[:2]] == [[4.0], [6.0]]
    beside = inference.against_onnx(rounds, "short", {"onion": 1.0})
    assert [(list(figure.values), figure.met) for figure in beside] == [([2.0], False), ([2.0], False)]


def test_onion_by_onnx_runtime_is_held_against_onnx_runtime_itself():
    rounds = [
        {
            "onion": {"classify": [0.005], "embed": [0.005]},
            "onion with ONNX Runtime": {"classify": [0.0042], "embed": [0.005]},
            "ONNX Runtime": {"classify": [0.004], "embed": [0.004]},
        }
    ]
    beside = inference.against_onnx(rounds, "short", inference.GOALS.alone)
    assert [figure.met for figure in beside] == [False, False, True, False]


def test_without_avx512_the_goals_are_others():
    waits = {"classify": [0.004], "embed": [0.004]}
    slower = {"classify": [0.005], "embed": [0.006]}
    beside = inference.against_onnx([{"onion": slower, "ONNX Runtime": waits}], "short", inference.GOALS_AVX2.alone)
    assert [figure.met for figure in beside] == [True, False]
    rounds = [{"onion": {"classify": 2.0}, "ONNX Runtime": {"classify": 3.0}}]
    assert inference.of_bulk(rounds, 12, "short", inference.GOALS_AVX2.bulk)[-1].met


def test_the_copy_of_onnx_runtime_finds_no_avx512(tmp_path):
    """The instruction itself is replaced, not the same bytes inside another one."""
    inside = bytes.fromhex("48 8b05 0f01d000")
    package, copies = tmp_path / "onnxruntime", tmp_path / "copies"
    (package / "capi").mkdir(parents=True)
    (package / "capi" / "a_state.cpython.so").write_bytes(inside + avx2.ASKED + b"." + avx2.ASKED)
    (package / "capi" / "providers.so").write_bytes(avx2.ASKED)
    copies.mkdir()
    avx2.copy_package(package, copies)
    copied = copies / "onnxruntime" / "capi"
    assert (copied / "a_state.cpython.so").read_bytes() == inside + avx2.ANSWERED + b"." + avx2.ANSWERED
    assert (copied / "providers.so").read_bytes() == avx2.ASKED
    with pytest.raises(ValueError, match="asks the processor in another way"):
        avx2.changed(inside)


@pytest.mark.parametrize("ways", ["ways", "onnx_ways"])
def test_a_side_of_onion_runs(tmp_path, ways):
    """A tiny model in the place of MiniLM, in a process of its own."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    Encoder(EncoderConfig(vocab_size=12, max_position_embeddings=16, **sizes)).save_pretrained(tmp_path)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "two", "three", "small", "words", "##s", "it"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    head = models._head(tmp_path, 8)
    job = {"folder": str(tmp_path), "head": head, "max_length": 16, "texts": TEXTS, "singles": 2, "avx2": False}
    if ways == "onnx_ways":
        pytest.importorskip("onnxruntime")
    side = Side("onion", "benchmarks.inference.work", {**job, "engine": f"onion_engine.{ways}"})
    with all_ready([side]):
        results, bulk, singles = (side.round(ask=ask) for ask in ("results", "bulk", "singles"))
    found = np.frombuffer(base64.b64decode(results["classify"]), "<f4").reshape(4, 2)
    assert found.sum(axis=1) == pytest.approx([1, 1, 1, 1], abs=2e-6)
    assert len(base64.b64decode(results["embed"])) == 4 * 4 * 8
    assert bulk.keys() == {"classify", "embed", "tokenise"}
    assert {way: len(waits) for way, waits in singles.items()} == {"classify": 2, "embed": 2, "tokenise": 2}
    assert side.last["peak_bytes"] > 0
    assert "paddlepaddle" in side.last["versions"]
