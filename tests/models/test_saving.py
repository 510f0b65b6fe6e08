"""Weights and config are two files that are read as one model."""

import json

import attrs
import numpy as np
import pytest
import safetensors

from onion.errors import WeightsError
from onion.models.encoder import Encoder
from onion.models.formats.safetensors_file import write_safetensors
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.weights import read_weights
from tests.models.helpers import SMALL, VARIANTS, small_encoder

CHANGES = [
    {"hidden_act": "relu"},
    {"layer_norm_eps": 1e-5},
    {"num_attention_heads": 2},
    {"pool_act": "linear"},
    {"pad_token_id": 1},
    {"model_type": "roberta", "pad_token_id": 1, "position_offset": 2},
]


class KilledError(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("layout", ["onion", "huggingface", "paddlenlp"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: ", ".join(change))
@pytest.mark.parametrize("kind", [lambda encoder: encoder, EncoderForPretraining], ids=["encoder", "pre-training"])
def test_new_weights_under_an_old_config_are_refused(tmp_path, monkeypatch, kind, change, layout):
    old, new = (kind(small_encoder(seed, attrs.evolve(SMALL, **more))) for seed, more in ((1, {}), (2, change)))
    old.save_pretrained(tmp_path, layout)

    def kill(*_):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(type(SMALL), "write", kill)
        with pytest.raises(KilledError):
            new.save_pretrained(tmp_path, layout)
    name = list(change)[-1]
    message = rf"model\.safetensors: was saved with another config .*{name} is .* and was .*Save again, or correct"
    with pytest.raises(WeightsError, match=message):
        type(new).from_pretrained(tmp_path)
    new.save_pretrained(tmp_path, layout)
    assert type(new).from_pretrained(tmp_path).state_dict().keys() == new.state_dict().keys()


def test_settings_given_when_loading_are_no_contradiction(tmp_path):
    small_encoder().save_pretrained(tmp_path)
    assert Encoder.from_pretrained(tmp_path, layer_norm_eps=1e-5, hidden_act="relu").config.hidden_act == "relu"
    with pytest.raises(WeightsError, match="hidden_act must be one of gelu, relu, got 'swish'"):
        Encoder.from_pretrained(tmp_path, hidden_act="swish")
    with pytest.raises(WeightsError, match="unknown settings of an encoder: hidden_dropout; known are vocab_size"):
        Encoder.from_pretrained(tmp_path, hidden_dropout=0)


def test_what_does_not_change_the_weights_meaning_may_be_edited(tmp_path):
    small_encoder().save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(values | {"hidden_dropout_prob": 0.3, "initializer_range": 0.1}))
    assert Encoder.from_pretrained(tmp_path).config.hidden_dropout_prob == 0.3


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_format_stays_what_others_look_for(tmp_path, variant):
    encoder = small_encoder(config=VARIANTS[variant])
    for layout, name in (("onion", "pd"), ("huggingface", "pt"), ("paddlenlp", "np")):
        encoder.save_pretrained(tmp_path, layout)
        with safetensors.safe_open(tmp_path / "model.safetensors", "np") as file:
            metadata = file.metadata()
        assert metadata["format"] == name
        assert json.loads(metadata["onion"]) == read_weights(tmp_path).settings == encoder.config.meaning()


@pytest.mark.parametrize("settings", ["[1]", "{", "[" * 100_000])
def test_settings_that_are_none_are_refused(tmp_path, settings):
    write_safetensors(tmp_path / "model.safetensors", {"a": np.ones(1, np.float32)}, {"onion": settings})
    with pytest.raises(WeightsError, match=r"model\.safetensors: 'onion' in its metadata is not a JSON object"):
        read_weights(tmp_path)
