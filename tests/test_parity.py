"""That ``make parity`` cannot say "equal" of what differs: its rows on golden files that were tampered with."""

import math
import shutil

import numpy as np
import pytest

from scripts.parity import common as table
from scripts.parity import encoders
from scripts.reference_outputs import architectures
from tests.paths import ROOT

BERT = ROOT / "tests" / "models" / "golden" / "bert"


@pytest.mark.parametrize(
    ("values", "agrees"),
    [
        ({"outputs": 1e-5, "gradients": 1e-5}, True),
        ({"outputs": 0.0}, True),
        ({"outputs": 1.1e-5, "gradients": 0.0}, False),
        ({"outputs": 0.0, "gradients": 1.1e-5}, False),
        ({"outputs": math.nan, "gradients": 0.0}, False),
        ({"outputs": 0.0, "gradients": math.nan}, False),
        ({"outputs": math.inf}, False),
        ({"outputs": 0, "unit": "lines"}, True),
        ({"outputs": 1, "unit": "lines"}, False),
    ],
)
def test_a_row_agrees_only_below_the_limit(values, agrees):
    row = table.Row("bert", "transformers 1", "torch", **values)
    assert row.agrees is agrees
    assert table.all_agree([row, row]) is agrees
    assert row.cells[-1] == ("equal" if agrees else "DIFFERS")


def test_the_table_has_a_line_for_each_row_and_nothing_compared_is_no_agreement():
    assert not table.all_agree([])
    assert table.worst([]) == math.inf
    assert math.isnan(table.worst([0.0, math.nan, 1.0]))
    assert table.worst([0.0, math.inf]) == math.inf
    rows = [table.Row("bert", "transformers 1", "torch", 2e-6, 0.5), table.Row("ids", "other 2", "9 lines", 0.0)]
    head, rule, first, second = table.rendered(rows).split("\n")
    assert head.split() == ["what", "against", "layouts", "outputs", "gradients", "verdict"]
    assert set(rule) == {"-", " "}
    assert first.split() == ["bert", "transformers", "1", "torch", "2.0e-06", "5.0e-01", "DIFFERS"]
    assert second.endswith("equal")


@pytest.fixture
def tampered(tmp_path):
    """The row of a golden model of which something in ``expected.npz`` was changed."""

    def row(change):
        folder = shutil.copytree(BERT, tmp_path / "bert")
        expected = dict(np.load(folder / "expected.npz"))
        change(expected)
        np.savez(folder / "expected.npz", **expected)
        return encoders._read(folder)

    return row


def test_a_model_as_the_reference_left_it_agrees(tampered):
    row = tampered(lambda expected: None)
    assert row.agrees
    assert (row.what, row.against.split()[0]) == ("bert", "transformers")
    assert row.layouts == "huggingface, huggingface-shards, paddlenlp, torch"


OUTPUTS = ["sequence_output", "pooled_output", "words", "next_sentence"]
GRADIENTS = ["gradient:embeddings.layer_norm.bias", "gradient:cls.predictions.decoder_bias"]


@pytest.mark.parametrize("name", [*OUTPUTS, *GRADIENTS])
def test_a_different_or_missing_array_is_seen(tampered, name, tmp_path):
    def shift(expected):
        array = expected[name]
        expected[name] = array + np.float32(3e-5 * (max(abs(array).max(), 1) if name in GRADIENTS else 1))

    def error(change):
        row = tampered(change)
        shutil.rmtree(tmp_path / "bert")
        assert name in OUTPUTS or row.outputs < 1e-5
        return row.outputs if name in OUTPUTS else row.gradients

    assert 2e-5 < error(shift) < 4e-5
    assert error(lambda expected: expected.pop(name)) == math.inf


def test_a_parameter_that_only_the_reference_has_is_seen(tampered):
    row = tampered(lambda expected: expected.update({"gradient:more.weight": np.zeros(3, np.float32)}))
    assert row.gradients == math.inf


def test_live_models_differ_from_the_golden_ones():
    """Other sizes, weights and batches, the same architecture; and each row of a batch has a token."""
    found = architectures
    for name, golden in found.CASES.items():
        live = found.live(golden, 5)
        assert (live.name, live.family) == (name, golden.family)
        assert {"vocab_size", "hidden_size", "intermediate_size"} <= {
            key for key in golden.config if golden.config[key] != live.config[key]
        }
        assert live.config.get("hidden_act") == golden.config.get("hidden_act")
        assert live.mask.any(axis=1).all()
        assert live.mask[0].all()
        assert live.mask[1].sum() == 1
        assert (
            abs(live.weight("pooler.dense.weight", (8, 8)) - golden.weight("pooler.dense.weight", (8, 8))).max() > 0.1
        )
