import json
import pickle
import tracemalloc

import attrs
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from onion.errors import WeightsError
from onion.models.encoder import Encoder
from onion.models.formats.safetensors_file import write_safetensors
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.weights import read_weights, write_weights
from tests.models.foreign_files import paddle_tensor, write_torch
from tests.models.helpers import (
    SMALL,
    VARIANTS,
    assert_equal_bits,
    hugging_face_arrays,
    our_heads,
    ours,
    small_encoder,
)  # fmt: skip


@pytest.mark.parametrize("heads", [False, True])
@pytest.mark.parametrize(
    ("layout", "read_as"), [("onion", "onion"), ("huggingface", "huggingface"), ("paddlenlp", "onion")]
)
@pytest.mark.parametrize("prefix", ["", "bert.", "roberta.", "ernie."])
def test_round_trips_are_bitwise(tmp_path, layout, read_as, prefix, heads):
    arrays, more = ours(), our_heads() if heads else {}
    path = write_weights(tmp_path, arrays | more, layout=layout, prefix=prefix)
    weights = read_weights(tmp_path)
    assert (weights.path, weights.layout, weights.ignored) == (path, read_as, ())
    assert_equal_bits(weights.arrays, arrays)
    assert_equal_bits(weights.heads, more)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_what_is_written_for_hugging_face(tmp_path):
    path = write_weights(tmp_path, ours(), layout="huggingface", prefix="bert.")
    assert_equal_bits(safetensors.numpy.load_file(path), hugging_face_arrays(small_encoder(), "bert."))
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == {"format": "pt"}


def test_what_is_written_for_paddlenlp(tmp_path):
    path = write_weights(tmp_path, ours() | our_heads(), layout="paddlenlp", prefix="ernie.")
    heads = our_heads()
    heads["cls.predictions.decoder.weight"] = heads.pop("cls.predictions.decoder_weight")
    expected = {f"ernie.{name}": array for name, array in ours().items()} | heads
    assert_equal_bits(safetensors.numpy.load_file(path), expected)
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == {"format": "np"}


def test_types_and_order_of_what_is_written(tmp_path):
    kinds = ("int8", "bool", "float16", "int16", "float32", "int64", "float64", "uint8", "int32")
    arrays = {kind: np.array([[0, 1, 1]]).astype(kind) for kind in kinds} | {"scalar": np.array(2.0)}
    path = write_weights(tmp_path, arrays)
    assert_equal_bits(safetensors.numpy.load_file(path), arrays)
    with pytest.raises(WeightsError, match="w has the type object, which safetensors files do not support"):
        write_weights(tmp_path, {"w": np.array([None])})
    assert_equal_bits(safetensors.numpy.load_file(path), arrays)


def test_an_unknown_layout_is_refused(tmp_path):
    with pytest.raises(WeightsError, match=r"cannot write the layout 'tensorflow'.*onion, huggingface, paddlenlp"):
        write_weights(tmp_path / "new", {}, layout="tensorflow")
    with pytest.raises(WeightsError, match="with the prefix 'x'"):
        write_weights(tmp_path / "new", {}, prefix="x")
    assert not (tmp_path / "new").exists()


def peak_while(function, *arguments, **settings):
    """The most memory that a call takes beyond what is there, in bytes, and what it returns."""
    tracemalloc.start()
    try:
        result = function(*arguments, **settings)
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


MEGABYTE = 1 << 20
LAYERS = {f"encoder.layers.{i}.linear1.weight": np.full((256, 1024), i, np.float32) for i in range(16)}  # 1 MB each


@pytest.mark.parametrize("layout", ["onion", "huggingface"])
def test_writing_copies_one_array_at_a_time(tmp_path, layout):
    peak, _ = peak_while(write_weights, tmp_path, LAYERS, layout=layout)
    assert peak < 3 * MEGABYTE


@pytest.mark.parametrize("source", ["paddle 4", "paddle 2", "torch", "static"])
def test_reading_takes_the_memory_of_the_weights_once(tmp_path, source):
    if source.startswith("paddle"):
        (tmp_path / "model_state.pdparams").write_bytes(pickle.dumps(LAYERS, protocol=int(source[-1])))
    elif source == "torch":
        write_torch(tmp_path / "pytorch_model.bin", {name.replace("rs.", "r."): a for name, a in LAYERS.items()})
    else:
        (tmp_path / "word_embedding").write_bytes(paddle_tensor(np.zeros((4, 3), np.float32)))
        for i, array in enumerate(LAYERS.values()):
            (tmp_path / f"encoder_layer_{i}_ffn_fc_0.w_0").write_bytes(paddle_tensor(array))
    peak, weights = peak_while(read_weights, tmp_path)
    assert len(weights.arrays) >= len(LAYERS)
    assert peak < (len(LAYERS) + 6) * MEGABYTE  # and what one array needs on its way


# -- weights and config, two files that are read as one model ----------------------------------------------------------

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
