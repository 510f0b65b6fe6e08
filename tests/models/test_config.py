"""Configs: every form that is read, what is refused, what is written."""

import json
import logging
import os
import re
import stat

import attrs
import pytest

from onion.errors import WeightsError
from onion.models.config import EncoderConfig
from tests.models.helpers import VARIANTS
from tests.paths import ROOT

VOCAB = ROOT.parent / "shared" / "data" / "vocab"
SIZES = {"vocab_size": 100, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3}
SIZES |= {"max_position_embeddings": 20}
STATIC = SIZES | {"hidden_act": "relu", "type_vocab_size": 2}
FLAT = SIZES | {"intermediate_size": 24}
NESTED = SIZES | {"hidden_act": "relu", "type_vocab_size": 4, "pad_token_id": 0, "init_class": "ErnieModel"}
ROBERTA = FLAT | {"model_type": "roberta"}
WWM = FLAT | {"pad_token_id": 0, "type_vocab_size": 2}
AS_WWM = {"model_type": "bert", "position_offset": 0, "pad_token_id": 0, "type_vocab_size": 2}
OF_TASKS = {"task_type_vocab_size": 16, "use_task_id": True}
IN_NESTED = {"model_type": "ernie", "hidden_act": "relu", "type_vocab_size": 4, "intermediate_size": 3072}
IN_NESTED |= {"layer_norm_eps": 1e-12, "tasks": 0}
WIDE = {"hidden_size": 1024, "num_attention_heads": 16}
BY_PADDLENLP = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
BY_PADDLENLP |= {"max_position_embeddings": 512, "type_vocab_size": 16, "pad_token_id": 0, "layer_norm_eps": 1e-12}


def read(folder, values, name="config.json"):
    (folder / name).write_text(values if isinstance(values, str) else json.dumps(values), encoding="utf-8")
    return EncoderConfig.read(folder)


def without(values, *names):
    return {name: value for name, value in values.items() if name not in names}


def assert_has(config, expected):
    assert {name: getattr(config, name) for name in expected} == expected


# -- forms -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        (
            "ernie-1.0-zh",
            "model_type=ernie vocab_size=18000 hidden_act=relu max_position_embeddings=513 intermediate_size=3072 "
            "type_vocab_size=2 tasks=0 layer_norm_eps=1e-05",
        ),
        (
            "ernie-3.0-zh",
            "model_type=ernie vocab_size=40000 hidden_act=gelu max_position_embeddings=2048 type_vocab_size=4 "
            "task_type_vocab_size=3 tasks=0",
        ),
        ("bert-base-chinese", "model_type=bert vocab_size=21128 layer_norm_eps=1e-12 tasks=0"),
    ],
    ids=["ernie-1.0-zh", "ernie-3.0-zh", "bert-base-chinese"],
)
def test_published_configs(folder, expected, caplog):
    if not (VOCAB / folder).is_dir():
        pytest.skip(f"the published configs are not there: {VOCAB / folder}")
    config = EncoderConfig.read(VOCAB / folder)
    for name, value in (each.split("=") for each in expected.split()):
        assert str(getattr(config, name)) == value, name
    assert not caplog.records  # every key of a published config is known


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        pytest.param(
            STATIC | {"sent_type_vocab_size": 4, "task_type_vocab_size": 16},
            "ernie_config.json",
            {"model_type": "ernie", "intermediate_size": 48, "layer_norm_eps": 1e-5, "type_vocab_size": 4}
            | {"task_type_vocab_size": 16, "use_task_id": False, "tasks": 0},
            id="static ERNIE",
        ),
        pytest.param(
            STATIC | OF_TASKS,
            "ernie_config.json",
            {"tasks": 16, "task_id": 0, "type_vocab_size": 2},
            id="static ERNIE with tasks",
        ),
        pytest.param(
            without(STATIC, "type_vocab_size") | {"sent_type_vocab_size": 4},
            "config.json",
            {"model_type": "ernie", "type_vocab_size": 4},
            id="static ERNIE 2.0 by its keys",
        ),
        pytest.param(
            STATIC | WIDE | {"sent_type_vocab_size": 4, "task_type_vocab_size": 16},
            "ernie_config.json",
            {"intermediate_size": 4096, "head_size": 64, "tasks": 0},
            id="ERNIE 2.0 large",
        ),
        pytest.param(
            STATIC | WIDE | {"intermediate_size": 4096, "max_position_embeddings": 600, "init_class": "ErnieModel"},
            "model_config.json",
            {"intermediate_size": 4096, "hidden_act": "relu", "max_length": 600},
            id="ERNIE tiny",
        ),
        pytest.param(NESTED, "model_config.json", IN_NESTED, id="nested, the encoder alone"),
        pytest.param(
            {"init_args": [NESTED], "num_classes": 3, "init_class": "ErnieForSequenceClassification"},
            "model_config.json",
            IN_NESTED,
            id="nested in a task model",
        ),
        pytest.param(
            {"init_args": [NESTED, 3], "init_class": "ErnieForTokenClassification"},
            "model_config.json",
            IN_NESTED,
            id="nested, with positional arguments",
        ),
        pytest.param(
            {"ernie": NESTED, "dropout": None, "init_class": "ErnieForQuestionAnswering"},
            "model_config.json",
            IN_NESTED,
            id="nested by name",
        ),
        pytest.param(
            NESTED | OF_TASKS | {"task_id": 0, "intermediate_size": 24},
            "model_config.json",
            {"tasks": 16, "intermediate_size": 24},
            id="nested with tasks",
        ),
        *(
            pytest.param(
                {"vocab_size": 100, "init_class": kind},
                "model_config.json",
                BY_PADDLENLP | {"position_offset": 0},
                id=f"PaddleNLP's defaults of {kind}",
            )
            for kind in ("BertModel", "ErnieModel", "RobertaModel")
        ),
        pytest.param(FLAT | {"model_type": "ernie", "use_task_id": True}, "config.json", {"tasks": 3}, id="flat tasks"),
        pytest.param(NESTED | {"use_task_id": True}, "model_config.json", {"tasks": 3}, id="nested default of tasks"),
        pytest.param(FLAT | {"pool_act": "tanh"}, "config.json", {"pool_act": "tanh"}, id="BERT pools with tanh"),
        pytest.param(FLAT | {"pool_act": "relu"}, "config.json", {"pool_act": "linear"}, id="or with nothing"),
        pytest.param(
            ROBERTA | {"type_vocab_size": 1},
            "config.json",
            {"pad_token_id": 1, "position_offset": 2, "max_length": 18},
            id="RoBERTa's positions",
        ),
        pytest.param(
            ROBERTA | {"pad_token_id": 4, "cls_token_id": 0},
            "config.json",
            {"position_offset": 5},
            id="RoBERTa with another padding id",
        ),
        # PaddleNLP writes cls_token_id 101 by default; RoBERTa proper is known by its padding.
        pytest.param(
            ROBERTA | {"pad_token_id": 1, "cls_token_id": 101},
            "config.json",
            {"model_type": "roberta", "position_offset": 2, "pad_token_id": 1},
            id="RoBERTa with PaddleNLP's default for cls",
        ),
        pytest.param(
            FLAT | {"architectures": ["RobertaForMaskedLM"], "cls_token_id": 101},
            "config.json",
            {"model_type": "roberta", "pad_token_id": 1, "position_offset": 2},
            id="RoBERTa without a padding id is Hugging Face's",
        ),
        pytest.param(
            ROBERTA | {"pad_token_id": 0, "position_offset": 1},
            "config.json",
            {"model_type": "roberta", "position_offset": 1},
            id="onion's own RoBERTa that pads with 0",
        ),
    ],
)
def test_forms(tmp_path, values, name, expected, caplog):
    config = read(tmp_path, values, name)
    assert_has(config, expected)
    assert not caplog.records
    assert EncoderConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize("cls", [{}, {"cls_token_id": 101}, {"cls_token_id": 0}], ids=["unsaid", "101", "0"])
@pytest.mark.parametrize(
    "form",
    [
        lambda told: told | {"model_type": "roberta"},
        lambda told: told | {"init_class": "RobertaModel"},
        lambda told: without(told, "pad_token_id") | {"init_class": "RobertaModel"},
        lambda told: {
            "init_args": [told | {"init_class": "RobertaModel"}],
            "init_class": "RobertaForTokenClassification",
        },
    ],
    ids=["flat", "nested", "nested, no padding id", "nested in a task model"],
)
def test_roberta_wwm_is_a_bert_whatever_its_class_is_called(form, cls):
    """PaddleNLP calls both RobertaModel, and omits cls_token_id from the configs of RobertaModels that are wwm."""
    assert_has(EncoderConfig.from_dict(form(WWM | cls)), AS_WWM)


@pytest.mark.parametrize(
    ("values", "family"),
    [
        ({}, "bert"),
        ({"architectures": None}, "bert"),
        ({"architectures": []}, "bert"),
        ({"model_type": "ernie"}, "ernie"),
        ({"architectures": ["ErnieForSequenceClassification"]}, "ernie"),
        ({"architectures": ["ErnieModel"], "paddlenlp_version": "2.5.2"}, "ernie"),
        ({"architectures": ["BertForPreTraining"]}, "bert"),
        ({"architectures": ["RobertaForMaskedLM"]}, "roberta"),
        ({"model_type": "bert", "architectures": ["Anything"]}, "bert"),
    ],
)
def test_the_family_is_found(values, family):
    assert EncoderConfig.from_dict(FLAT | values).model_type == family


def test_the_newest_form_in_a_folder_is_read(tmp_path):
    assert read(tmp_path, STATIC, "ernie_config.small.json").vocab_size == 100
    assert read(tmp_path, STATIC | {"vocab_size": 101}, "ernie_config.json").vocab_size == 101
    assert read(tmp_path, NESTED | {"vocab_size": 102}, "model_config.json").vocab_size == 102
    assert read(tmp_path, FLAT | {"vocab_size": 103}, "config.json").vocab_size == 103


def test_static_weights_go_with_their_own_config(tmp_path):
    read(tmp_path, STATIC, "ernie_config.json")
    assert read(tmp_path, FLAT | {"vocab_size": 103, "layer_norm_eps": 1e-12}).vocab_size == 103
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "word_embedding").write_bytes(b"")
    config = EncoderConfig.read(tmp_path)
    assert (config.vocab_size, config.layer_norm_eps) == (100, 1e-5)
    (tmp_path / "ernie_config.json").rename(tmp_path / "ernie_config.base.json")
    assert EncoderConfig.read(tmp_path) == config
    (tmp_path / "model_state.pdparams").write_bytes(b"")  # these are read, and the others are not
    assert EncoderConfig.read(tmp_path).vocab_size == 103


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "xlm-roberta"}, "model_type must be one of bert, ernie, roberta, got 'xlm-roberta'"),
        ({"model_type": ["bert"]}, "model_type must be one of bert, ernie, roberta, got ['bert']"),
        *(
            ({"architectures": [name]}, f"model_type must be one of bert, ernie, roberta, got {family!r}")
            for name, family in {
                "ErnieGramModel": "erniegram",
                "ErnieMModel": "erniem",
                "XLMRobertaModel": "xlmroberta",
                "GPT2LMHeadModel": "gpt2",
                "ErnieCtmModel": "erniectm",
                "XLNetModel": "xlnet",
            }.items()
        ),
        ({"is_decoder": True}, "is_decoder True is not supported, only False is"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key' is not supported"),
        ({"num_attention_heads": 7}, "hidden_size 12 is not divisible by num_attention_heads 7"),
        ({"pad_token_id": 100}, "pad_token_id 100 is outside the vocabulary of 100"),
        ({"use_task_id": True}, "use_task_id is set, but task_id 0 is outside task_type_vocab_size 0"),
        ({**OF_TASKS, "task_id": 16}, "use_task_id is set, but task_id 16 is outside task_type_vocab_size 16"),
        ({"position_offset": 20}, "position_offset 20 leaves none of 20 positions"),
        ({"model_type": "roberta", "pad_token_id": None}, "pad_token_id must be"),
        ({"model_type": "ernie", "pool_act": "relu"}, "pool_act must be one of tanh, linear, got 'relu'"),
    ],
)
def test_values_that_make_no_encoder_are_refused(tmp_path, change, message):
    with pytest.raises(WeightsError, match=rf"config\.json: {re.escape(message)}"):
        read(tmp_path, FLAT | change)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("vocab_size", value) for value in (True, 1.0, "384", None)),
        ("num_hidden_layers", 0),
        *(("pad_token_id", value) for value in (-1,)),
        ("type_vocab_size", -1),
        *(("layer_norm_eps", value) for value in (float("nan"), -1, 0, "1e-12")),
        *(("initializer_range", value) for value in (-0.1, float("inf"), 10**400, True)),
        *(("hidden_dropout_prob", value) for value in (float("nan"), 1.0)),
        ("use_task_id", 1),
        *(("hidden_act", value) for value in (["gelu"], "swish")),
        *(("model_type", value) for value in (None, "gpt2")),
    ],
)
def test_values_out_of_range_are_the_same_error_however_a_config_is_made(setting, value):
    config = EncoderConfig.from_dict(FLAT)
    for make in (
        lambda: EncoderConfig(**config.to_dict() | {setting: value}),
        lambda: attrs.evolve(config, **{setting: value}),
        lambda: config.changed(**{setting: value}),
        lambda: EncoderConfig.from_dict(FLAT | {setting: value}),
    ):
        with pytest.raises(WeightsError, match=f"^{setting} must be .*, got .*$"):
            make()


@pytest.mark.parametrize(
    ("first", "change", "offset"),
    [
        ({}, {"model_type": "roberta", "pad_token_id": 1}, 2),
        ({"model_type": "roberta", "pad_token_id": 1}, {"pad_token_id": 4}, 5),
        ({"model_type": "roberta", "pad_token_id": 1}, {"model_type": "ernie"}, 0),
    ],
)
def test_positions_that_would_no_longer_match_the_family_are_refused(first, change, offset):
    config = EncoderConfig.from_dict(FLAT | first)
    with pytest.raises(WeightsError, match=rf"does not match .*; set position_offset to {offset}"):
        attrs.evolve(config, **change)
    assert config.changed(**change, position_offset=offset).max_length == 20 - offset


def test_unknown_settings_are_named_with_those_that_exist():
    message = "unknown settings of an encoder: hidden_dropout; known are vocab_size, .*, hidden_dropout_prob,"
    with pytest.raises(WeightsError, match=message):
        EncoderConfig.from_dict(FLAT).changed(hidden_dropout=0)


def test_unknown_keys_are_named_once_and_do_no_harm(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        config = read(tmp_path, FLAT | {"rotary": 3, "num_labels": 2, "id2label": {}, "hiden_act": "relu"})
    assert config.hidden_act == "gelu"
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'config.json'}: unknown keys, ignored: rotary, hiden_act"
    ]


@pytest.mark.parametrize(
    ("values", "name", "message"),
    [
        ("{", "config.json", "not a JSON file"),
        ('{"a":' + "[" * 200_000 + "]" * 200_000 + "}", "config.json", "not a JSON file: nested too deeply$"),
        ("[1]", "config.json", "contains a JSON list, not an object$"),
        (without(FLAT, "vocab_size", "hidden_size"), "config.json", "missing keys: vocab_size, hidden_size$"),
        (
            without(FLAT, "hidden_size") | {"hiden_size": 12},
            "config.json",
            "missing keys: hidden_size; unknown keys: hiden_size$",
        ),
        (SIZES, "ernie_config.json", r"missing keys: sent_type_vocab_size \(or type_vocab_size\)$"),
    ],
    ids=["no JSON", "deep", "list", "missing", "misspelt", "static without types"],
)
def test_broken_files_are_refused(tmp_path, values, name, message):
    with pytest.raises(WeightsError, match=f"{re.escape(name)}: {message}"):
        read(tmp_path, values, name)


def test_a_missing_file_and_a_folder_without_a_config_or_with_several(tmp_path):
    with pytest.raises(WeightsError, match=r"nowhere.config\.json: cannot read: No such file"):
        EncoderConfig.read(tmp_path / "nowhere" / "config.json")
    with pytest.raises(WeightsError, match=r"contains no config: none of config\.json, model_config"):
        EncoderConfig.read(tmp_path)
    read(tmp_path, STATIC, "ernie_config.base.json")
    with pytest.raises(WeightsError, match=r"several configs, give one: ernie_config\.base\.json, ernie_config\.xb"):
        read(tmp_path, STATIC, "ernie_config.xbase.json")
    assert EncoderConfig.read(tmp_path / "ernie_config.xbase.json").hidden_act == "relu"


# -- writing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_read_as_it_was_written(tmp_path, variant, caplog):
    config = attrs.evolve(VARIANTS[variant], initializer_range=0.03)
    config.write(tmp_path)
    assert EncoderConfig.read(tmp_path) == EncoderConfig.read(tmp_path / "config.json") == config
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
    assert not caplog.records


def test_a_written_file_has_ordinary_permissions(tmp_path):
    EncoderConfig.from_dict(FLAT).write(tmp_path)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "config.json").stat().st_mode) == 0o666 & ~mask


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(WeightsError, match="cannot write"):
        EncoderConfig.from_dict(FLAT).write(tmp_path / "nowhere" / "config.json")
