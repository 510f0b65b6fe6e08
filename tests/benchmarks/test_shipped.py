"""benchmarks/pretraining/study/shipped.py: the model that comes with onion, made from a pretrained encoder."""

import json
import shutil

import numpy as np
import pytest
import safetensors.numpy

from benchmarks.pretraining.study import shipped
from benchmarks.pretraining.study.shipped import Difference
from onion.errors import WeightsError
from onion.models.auto import load_encoder
from onion.models.encoder import Encoder
from onion.models.families import read_config
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.weights import read_weights
from onion.tasks.pretraining.corpus.opening import open_corpus
from tests.tasks.helpers import snapshot
from tests.tasks.pretraining.conftest import config_file, corpora  # noqa: F401


@pytest.fixture(scope="module")
def encoder(tmp_path_factory, corpora, config_file):  # noqa: F811
    """The folder that ``onion pretrain`` leaves, with random weights, for texts of 140 tokens."""
    room = tmp_path_factory.mktemp("run")
    config = {**json.loads(config_file.read_text()), "max_position_embeddings": 140}
    (room / "config.json").write_text(json.dumps(config))
    folder = room / "encoder"
    open_corpus(corpora / "train").tokenizer.save_pretrained(folder)
    EncoderForPretraining(Encoder(read_config(room))).save_pretrained(folder, "huggingface")
    return folder


@pytest.fixture
def target(tmp_path):
    """Where the model will be; nothing is there."""
    return tmp_path / "embedded" / "small"


@pytest.fixture
def made(encoder, corpora, target):  # noqa: F811
    shipped.make(encoder, corpora / "valid", target)
    return target


def test_the_weights_have_16_bits_and_are_read_as_float32(encoder, made):
    stored = safetensors.numpy.load_file(made / "model.safetensors")
    assert {array.dtype for array in stored.values()} == {np.dtype(np.float16)}
    whole, half = read_weights(encoder), read_weights(made)
    assert {array.dtype for array in half.arrays.values()} == {np.dtype(np.float32)}
    for name, array in {**whole.arrays, **whole.heads}.items():
        there = {**half.arrays, **half.heads}[name]
        assert np.array_equal(there, array[: len(there)].astype(np.float16).astype(np.float32))
        assert len(there) == len(array) or name.endswith("position_embeddings.weight")
    assert {each.numpy().dtype for each in load_encoder(made).parameters()} == {np.dtype(np.float32)}


def test_positions_that_were_never_trained_are_left_out(encoder, made):
    assert read_config(made).to_dict() == {**read_config(encoder).to_dict(), "max_position_embeddings": 128}
    assert read_weights(made).check(read_config(made)) == ()


def test_the_same_encoder_gives_the_same_bytes(encoder, corpora, made):  # noqa: F811
    before = snapshot(made)
    assert shipped.main([str(encoder), str(corpora / "valid"), str(made)]) == 0
    assert snapshot(made) == before
    assert {path.name for path in made.parent.iterdir()} == {"small"}


def test_what_float16_does_not_hold_is_refused_and_nothing_is_written(encoder, corpora, target, tmp_path):  # noqa: F811
    large = shutil.copytree(encoder, tmp_path / "large")
    arrays = safetensors.numpy.load_file(large / "model.safetensors")
    next(iter(arrays.values())).flat[0] = 1e5
    safetensors.numpy.save_file(arrays, large / "model.safetensors")
    with pytest.raises(WeightsError, match="float16 does not hold"):
        shipped.make(large, corpora / "valid", target)
    assert not target.exists()


def test_a_folder_that_is_no_encoder_is_refused(corpora, target, tmp_path, capsys):  # noqa: F811
    assert shipped.main([str(tmp_path), str(corpora / "valid"), str(target)]) == 1
    assert "config.json: no such file; give the folder `encoder`" in capsys.readouterr().err


@pytest.mark.parametrize("difference", [Difference(0.03, 4.0, 4.0), Difference(0.01, 4.0, 4.02)])
def test_a_model_that_16_bits_change_is_refused(made, difference):
    shipped.check(made, Difference(0.01, 4.0, 4.005))
    with pytest.raises(WeightsError, match="16 bits change"):
        shipped.check(made, difference)


def test_a_large_model_is_refused(made, monkeypatch):
    monkeypatch.setattr(shipped, "MAX_BYTES", 1000)
    with pytest.raises(WeightsError, match="less than 1,000"):
        shipped.check(made, Difference(0.0, 4.0, 4.0))
