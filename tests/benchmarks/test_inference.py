"""benchmarks/inference: order and padding change nothing; what is told of the rounds; no time of sides that differ."""

import base64
import importlib
import json

import numpy as np
import pytest

from tests.paths import ROOT

TEXTS = ["three small words", "a", "two words", ""]


@pytest.fixture
def load(monkeypatch):
    """Import a module of benchmarks/inference."""
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.inference.{name}")


@pytest.fixture
def work(load):
    return load("work")


@pytest.fixture
def figures(load):
    return load("figures")


def written(*values):
    return base64.b64encode(np.array(values, "<f4").tobytes()).decode()


def lengths(texts):
    return np.array([[len(text)] for text in texts], np.float32)


@pytest.mark.parametrize("way", ["in_order", "by_length"])
@pytest.mark.parametrize("batch", [1, 3, 64])
def test_results_come_back_in_the_order_of_the_texts(work, monkeypatch, way, batch):
    monkeypatch.setattr(work, "BATCH", batch)
    assert getattr(work, way)(lengths)(TEXTS).tolist() == [[17], [1], [9], [0]]


def test_short_texts_share_a_batch(work, monkeypatch):
    monkeypatch.setattr(work, "BATCH", 2)
    given = []
    work.by_length(lambda texts: given.append(list(texts)) or lengths(texts))(TEXTS)
    assert given == [["", "a"], ["two words", "three small words"]]


def test_the_mean_is_over_tokens_only(work):
    vectors = np.array([[[1.0, 2.0], [3.0, 4.0], [90.0, 90.0]]], np.float32)
    assert work.mean_of(vectors, np.array([[1, 1, 0]])).tolist() == [[2.0, 3.0]]


def test_probabilities_of_large_logits_are_numbers(work):
    assert work.probabilities(np.array([[1000.0, 1000.0], [0.0, 1000.0]])).tolist() == [[0.5, 0.5], [0.0, 1.0]]


def test_the_percentile_is_a_value_that_was_there(figures):
    values = [float(value) for value in range(200, 0, -1)]
    assert figures.percentile(values, 99) == 198
    assert figures.percentile([5.0], 99) == 5


def test_sides_that_differ_are_refused_and_others_told(figures, load):
    results = {
        "onion": {"classify": written(0.5, 0.25)},
        "transformers": {"classify in order": written(0.5, 0.25 + 2**-15)},
        "ONNX Runtime int8": {"classify": written(0.5, 0.5)},
    }
    assert figures.differences(results, ["transformers"]) == {"transformers": 2**-15, "ONNX Runtime int8": 0.25}
    failed = importlib.import_module("benchmarks.common.processes").FailedError
    with pytest.raises(failed, match=r"int8 computes something else than onion: the numbers differ by 0\.25"):
        figures.differences(results, ["transformers", "ONNX Runtime int8"])


@pytest.mark.parametrize("wrong", [(0.5,), (0.5, float("nan"))])
def test_another_number_of_values_and_what_is_no_number_are_refused(figures, wrong):
    failed = importlib.import_module("benchmarks.common.processes").FailedError
    results = {"onion": {"embed": written(0.5, 0.25)}, "transformers": {"embed": written(*wrong)}}
    with pytest.raises(failed, match="transformers computes something else"):
        figures.differences(results, ["transformers"])


def test_bulk_is_told_in_texts_a_second_and_beside_onion(figures):
    rounds = [
        {"onion": {"classify": 2.0, "tokenise": 0.5}, "transformers": {"classify": 3.0, "classify in order": 6.0}},
        {"onion": {"classify": 4.0, "tokenise": 0.5}, "transformers": {"classify": 6.0, "classify in order": 12.0}},
    ]
    told = [
        (figure.what, list(figure.values), figure.met)
        for figure in figures.of_bulk(rounds, 12, "short", figures.GOALS.bulk)
    ]
    assert told == [
        ("short, classification: onion", [6.0, 3.0], None),
        ("short, classification: transformers, short ones first", [4.0, 2.0], None),
        ("onion beside it", [1.5, 1.5], False),
        ("short, classification: transformers, as they come", [2.0, 1.0], None),
        ("onion beside it", [3.0, 3.0], True),
    ]
    assert [list(figure.values) for figure in figures.of_share(rounds, "short")] == [[25.0, 12.5]]


def test_what_one_text_waits_is_told_in_milliseconds_and_beside_onnx(figures):
    waits = {"classify": [0.001, 0.003, 0.002], "embed": [0.004, 0.004, 0.004]}
    double = {way: [2 * wait for wait in each] for way, each in waits.items()}
    rounds = [{"onion": double, "ONNX Runtime": waits}]
    assert [list(figure.values) for figure in figures.of_singles(rounds, "short")[:2]] == [[4.0], [6.0]]
    beside = figures.against_onnx(rounds, "short", 1.0)
    assert [(list(figure.values), figure.met) for figure in beside] == [([2.0], False), ([2.0], False)]


def test_without_avx512_the_goals_are_others(figures):
    waits = {"classify": [0.004], "embed": [0.004]}
    slower = {"classify": [0.005], "embed": [0.006]}
    beside = figures.against_onnx([{"onion": slower, "ONNX Runtime": waits}], "short", figures.GOALS_AVX2.alone)
    assert [figure.met for figure in beside] == [True, False]
    rounds = [{"onion": {"classify": 2.0}, "ONNX Runtime": {"classify": 3.0}}]
    assert figures.of_bulk(rounds, 12, "short", figures.GOALS_AVX2.bulk)[-1].met


def test_the_copy_of_onnx_runtime_finds_no_avx512(load, tmp_path):
    """The instruction itself is replaced, not the same bytes inside another one."""
    avx2 = load("engines.onnx_avx2")
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


def test_a_side_of_onion_runs(load, tmp_path, monkeypatch):
    """A tiny model in the place of MiniLM, in a process of its own."""
    encoder = importlib.import_module("onion.models.encoder")
    config = importlib.import_module("onion.models.config").EncoderConfig(
        vocab_size=12,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    encoder.Encoder(config).save_pretrained(tmp_path)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "two", "three", "small", "words", "##s", "it"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    head = load("models")._head(tmp_path, 8)
    job = {"folder": str(tmp_path), "head": head, "max_length": 16, "texts": TEXTS, "singles": 2, "engine": "onion"}
    sides = importlib.import_module("benchmarks.common.sides")
    side = sides.Side("onion", "benchmarks.inference.side", json.loads(json.dumps(job)))
    with sides.all_ready([side]):
        results, bulk, singles = (side.round(ask=ask) for ask in ("results", "bulk", "singles"))
    found = np.frombuffer(base64.b64decode(results["classify"]), "<f4").reshape(4, 2)
    assert found.sum(axis=1) == pytest.approx([1, 1, 1, 1], abs=2e-6)
    assert len(base64.b64decode(results["embed"])) == 4 * 4 * 8
    assert bulk.keys() == {"classify", "embed", "tokenise"}
    assert {way: len(waits) for way, waits in singles.items()} == {"classify": 2, "embed": 2, "tokenise": 2}
    assert side.last["peak_bytes"] > 0
    assert "paddlepaddle" in side.last["versions"]
