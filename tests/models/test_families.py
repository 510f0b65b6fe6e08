import json
import re
from pathlib import Path

import numpy as np
import paddle
import pytest

from onion.errors import DataError, WeightsError
from onion.models.auto import encoder_class, load_encoder, new_encoder
from onion.models.electra.config import ElectraConfig
from onion.models.electra.encoder import ElectraEncoder
from onion.models.encoder import Encoder
from onion.models.families import BERT, FAMILIES, family_in, read_config
from onion.models.formats.name_mapping import BertNaming
from onion.models.weights import read_weights
from onion.models.xlnet.config import XLNetConfig
from onion.models.xlnet.encoder import XLNetEncoder
from tests.models.helpers import SMALL, VARIANTS, small_encoder

GOLDEN = Path(__file__).parent / "golden"
SIZES = {"vocab_size": 12, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
SIZES |= {"hidden_dropout_prob": 0.0}
XLNET = XLNetConfig(**SIZES)
ELECTRA = ElectraConfig(**SIZES, max_position_embeddings=10, embedding_size=4, attention_probs_dropout_prob=0.0)
CLASSES = {"bert": Encoder, "ernie": Encoder, "roberta": Encoder, "electra": ElectraEncoder, "xlnet": XLNetEncoder}


def config_in(folder, **values):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(values))
    return folder


@pytest.mark.parametrize("config", [SMALL, ELECTRA, XLNET], ids=lambda config: config.model_type)
def test_a_family_is_known_by_its_config(config, tmp_path):
    encoder = new_encoder(config)
    encoder.save_pretrained(tmp_path)
    assert read_config(tmp_path) == config
    assert family_in(tmp_path) is FAMILIES[config.model_type]
    loaded = load_encoder(tmp_path)
    assert type(loaded) is type(encoder) is CLASSES[config.model_type] is encoder_class(config)
    arrays = {name: parameter.numpy() for name, parameter in encoder.named_parameters()}
    assert all(np.array_equal(parameter.numpy(), arrays[name]) for name, parameter in loaded.named_parameters())


@pytest.mark.parametrize("config", [*VARIANTS.values(), ELECTRA, XLNET], ids=[*VARIANTS, "electra", "xlnet"])
def test_the_shapes_are_those_of_the_parameters(config):
    parameters = new_encoder(config).named_parameters()
    assert config.shapes() == {name: tuple(parameter.shape) for name, parameter in parameters}


@pytest.mark.parametrize("model_type", ["gpt2", "t5", ["bert"], None])
def test_an_unknown_model_type_is_refused_with_the_families(tmp_path, model_type):
    folder = config_in(tmp_path, model_type=model_type)
    families = "bert, bow, cnn, electra, ernie, lstm, roberta, xlnet"
    message = f"config.json: model_type must be one of {families}, got {model_type!r}"
    with pytest.raises(WeightsError, match=re.escape(message)):
        load_encoder(folder)
    assert family_in(folder) is BERT


def test_a_class_of_an_unknown_family_too(tmp_path):
    with pytest.raises(
        WeightsError, match="model_type must be one of bert, bow, cnn, electra, ernie, lstm, roberta, xlnet, got 'gpt2'"
    ):
        read_config(config_in(tmp_path, architectures=["GPT2LMHeadModel"]))


@pytest.mark.parametrize("named", ["XLNetLMHeadModel", "XLNetModel", "XLNetForSequenceClassification"])
def test_the_class_tells_the_family_where_the_config_does_not(tmp_path, named):
    stored = json.loads((GOLDEN / "xlnet" / "huggingface" / "config.json").read_text()) | {"architectures": [named]}
    del stored["model_type"]
    assert isinstance(read_config(config_in(tmp_path, **stored)), XLNetConfig)


def test_an_encoder_of_one_family_does_not_load_another(tmp_path):
    with pytest.raises(WeightsError, match="model_type must be one of bert, ernie, roberta, got 'xlnet'"):
        Encoder.from_pretrained(GOLDEN / "xlnet" / "huggingface")


@pytest.mark.parametrize("name", ["xlnet", "electra"])
def test_paddlenlps_folders_are_read(name, tmp_path):
    """Its names, its file and its matrices: those of its source; no PaddleNLP has written this folder."""
    source = GOLDEN / name / "huggingface"
    encoder = load_encoder(source)
    prefix = FAMILIES[name].naming.prefixes[0]
    arrays = {name: parameter.numpy() for name, parameter in encoder.named_parameters()}
    stored = {prefix + key: array for key, array in arrays.items() if not key.startswith("pooler.")}
    stored |= {f"classifier.dense.{kind}": arrays[f"pooler.dense.{kind}"] for kind in ("weight", "bias")}
    stored |= {"classifier.out_proj.weight": np.zeros((8, 2), np.float32)}
    config_in(tmp_path, **json.loads((source / "config.json").read_text()))
    paddle.save({key: paddle.to_tensor(array) for key, array in stored.items()}, str(tmp_path / "model_state.pdparams"))
    weights = read_weights(tmp_path)
    assert weights.layout == "paddlenlp"
    assert weights.ignored == ("classifier.out_proj.weight",)
    assert weights.arrays.keys() == arrays.keys()
    assert all(np.array_equal(array, arrays[key]) for key, array in weights.arrays.items())


@pytest.mark.parametrize("name", ["xlnet", "electra"])
def test_an_encoder_without_a_pooler_is_nothing_to_warn_of(name, tmp_path, caplog):
    """As it is published: pre-training does not need one, so each training starts with a new one."""
    encoder = load_encoder(GOLDEN / name / "huggingface")
    del encoder.pooler
    encoder.save_pretrained(tmp_path, "huggingface")
    loaded = load_encoder(tmp_path)
    assert loaded.pooler.dense.weight.shape == [8, 8]
    assert not caplog.records


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attn_type": "uni"}, "attn_type 'uni' is not supported, only 'bi' is"),
        ({"bi_data": True}, "bi_data True is not supported"),
        ({"summary_type": "first"}, "summary_type 'first' is not supported"),
        ({"d_head": 3}, "d_head 3 times n_head 2 is not d_model 8"),
        ({"ff_activation": "silu"}, "hidden_act must be one of gelu, relu, got 'silu'"),
        ({"pad_token_id": 24}, "pad_token_id 24 is outside the vocabulary of 24"),
        ({"clamp_len": -2}, "clamp_len must be a whole number of -1 or more, got -2"),
    ],
)
def test_an_xlnet_that_is_not_supported_is_refused(tmp_path, change, message):
    stored = json.loads((GOLDEN / "xlnet" / "huggingface" / "config.json").read_text())
    with pytest.raises(WeightsError, match=rf"config\.json: .*{message}"):
        read_config(config_in(tmp_path, **stored | change))


def test_xlnets_config_is_written_under_its_own_names(tmp_path):
    XLNET.write(tmp_path)
    stored = json.loads((tmp_path / "config.json").read_text())
    assert (stored["d_model"], stored["n_layer"], stored["n_head"], stored["d_inner"]) == (8, 1, 2, 16)
    assert (stored["model_type"], stored["summary_type"]) == ("xlnet", "last")
    assert "hidden_size" not in stored


def test_xlnet_has_no_positions_and_no_tasks():
    encoder, ids = new_encoder(XLNET), np.array([[6, 7, 8]])
    with pytest.raises(DataError, match="XLNet has distances instead of position_ids"):
        encoder(ids, position_ids=ids)
    with pytest.raises(DataError, match="task_type_ids contains 1"):
        encoder(ids, task_type_ids=1)
    with pytest.raises(DataError, match=r"token_type_ids has the shape \[1, 2\], input_ids \[1, 3\]"):
        encoder(ids, token_type_ids=ids[:, :2])


def test_xlnet_takes_texts_of_any_length():
    encoder = new_encoder(XLNET)
    assert encoder(np.full((1, 300), 7)).sequence_output.shape == [1, 300, 8]
    assert encoder(np.full((1, 1), 7)).sequence_output.shape == [1, 1, 8]
    assert XLNET.max_length > 1 << 30


def test_only_whether_segments_are_equal_matters_to_xlnet():
    encoder, ids = load_encoder(GOLDEN / "xlnet" / "huggingface"), np.array([[6, 7, 8, 9]])
    encoder.eval()
    segments = [0, 1, 1, 2], [5, 3, 3, 0], [0, 0, 1, 2]
    found = [encoder(ids, np.array([each])).pooled_output.numpy() for each in segments]
    assert np.array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2], atol=1e-4)
    assert np.array_equal(encoder(ids).pooled_output.numpy(), encoder(ids, ids * 0).pooled_output.numpy())


def test_a_dropout_of_xlnet_is_in_training_only():
    paddle.seed(0)
    encoder, ids = new_encoder(XLNET.changed(hidden_dropout_prob=0.5)), np.array([[6, 7, 8, 9]])
    one, other = (encoder(ids).pooled_output.numpy() for _ in range(2))
    assert not np.allclose(one, other)
    encoder.eval()
    one, other = (encoder(ids).pooled_output.numpy() for _ in range(2))
    assert np.array_equal(one, other)


def test_bert_keeps_its_naming():
    assert isinstance(BERT.naming, BertNaming)
    assert small_encoder().masked_lm
    assert not ElectraEncoder.masked_lm
    assert not XLNetEncoder.masked_lm
