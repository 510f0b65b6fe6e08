import json
import logging

import attrs
import pytest

from onion.errors import WeightsError
from onion.models.config import EncoderConfig
from tests.models.helpers import VARIANTS
from tests.paths import ROOT

VOCAB = ROOT.parent / "shared" / "data" / "vocab"
SIZES = {
    "vocab_size": 100,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "max_position_embeddings": 20,
}
STATIC = SIZES | {"hidden_act": "relu", "type_vocab_size": 2}
FLAT = SIZES | {"intermediate_size": 24}
NESTED = SIZES | {"hidden_act": "relu", "type_vocab_size": 4, "pad_token_id": 0, "init_class": "ErnieModel"}


def read(tmp_path, values, name="config.json"):
    (tmp_path / name).write_text(json.dumps(values), encoding="utf-8")
    return EncoderConfig.read(tmp_path)


@pytest.mark.data
@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        (
            "ernie-1.0-zh",
            {
                "model_type": "ernie",
                "vocab_size": 18000,
                "hidden_act": "relu",
                "max_position_embeddings": 513,
                "intermediate_size": 3072,
                "type_vocab_size": 2,
                "tasks": 0,
                "layer_norm_eps": 1e-5,
            },
        ),
        (
            "ernie-3.0-zh",
            {
                "model_type": "ernie",
                "vocab_size": 40000,
                "hidden_act": "gelu",
                "max_position_embeddings": 2048,
                "type_vocab_size": 4,
                "task_type_vocab_size": 3,
                "tasks": 0,
            },
        ),
        ("bert-base-chinese", {"model_type": "bert", "vocab_size": 21128, "layer_norm_eps": 1e-12, "tasks": 0}),
    ],
)
def test_published_configs(folder, expected, caplog):
    if not (VOCAB / folder).is_dir():
        pytest.skip(f"the published configs are not there: {VOCAB / folder}")
    config = EncoderConfig.read(VOCAB / folder)
    assert {name: getattr(config, name) for name in expected} == expected
    assert not caplog.records  # every key of a published config is known


def test_static_ernie_has_its_own_names_and_epsilon(tmp_path):
    config = read(tmp_path, STATIC | {"sent_type_vocab_size": 4, "task_type_vocab_size": 16}, "ernie_config.json")
    assert (config.model_type, config.intermediate_size, config.layer_norm_eps) == ("ernie", 48, 1e-5)
    assert (config.type_vocab_size, config.task_type_vocab_size, config.use_task_id, config.tasks) == (4, 16, False, 0)


def test_static_ernie_uses_tasks_if_told(tmp_path):
    config = read(tmp_path, STATIC | {"task_type_vocab_size": 16, "use_task_id": True}, "ernie_config.json")
    assert (config.tasks, config.task_id, config.type_vocab_size) == (16, 0, 2)


def test_static_ernies_2_0_is_known_by_its_keys_under_any_name(tmp_path):
    config = read(tmp_path, {k: v for k, v in STATIC.items() if k != "type_vocab_size"} | {"sent_type_vocab_size": 4})
    assert (config.model_type, config.type_vocab_size) == ("ernie", 4)


def test_the_sizes_of_ernie_2_0_large_and_tiny(tmp_path):
    large = {"hidden_size": 1024, "num_attention_heads": 16, "num_hidden_layers": 24, "hidden_act": "gelu"}
    large |= {"vocab_size": 30522, "max_position_embeddings": 512, "sent_type_vocab_size": 4}
    config = read(tmp_path, large | {"task_type_vocab_size": 16}, "ernie_config.json")
    assert (config.intermediate_size, config.head_size, config.tasks) == (4096, 64, 0)
    tiny = {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 3}
    tiny |= {"vocab_size": 50006, "max_position_embeddings": 600, "type_vocab_size": 2, "hidden_act": "relu"}
    config = read(tmp_path, tiny | {"init_class": "ErnieModel"}, "model_config.json")
    assert (config.intermediate_size, config.hidden_act, config.max_length) == (4096, "relu", 600)


def test_static_ernie_without_types_is_refused(tmp_path):
    with pytest.raises(WeightsError, match=r"ernie_config\.json: keys are missing: sent_type_vocab_size \(or type_v"):
        read(tmp_path, SIZES, "ernie_config.json")


@pytest.mark.parametrize(
    "nest",
    [
        lambda base: base,
        lambda base: {"init_args": [base], "num_classes": 3, "init_class": "ErnieForSequenceClassification"},
        lambda base: {"init_args": [base, 3], "init_class": "ErnieForTokenClassification"},
        lambda base: {"ernie": base, "dropout": None, "init_class": "ErnieForQuestionAnswering"},
    ],
    ids=["base", "task model", "positional", "by name"],
)
def test_paddlenlps_nested_config(tmp_path, nest, caplog):
    config = read(tmp_path, nest(NESTED), "model_config.json")
    assert (config.model_type, config.hidden_act, config.type_vocab_size) == ("ernie", "relu", 4)
    assert (config.intermediate_size, config.layer_norm_eps, config.tasks) == (3072, 1e-12, 0)
    assert not caplog.records


def test_paddlenlps_nested_config_with_tasks(tmp_path):
    told = NESTED | {"task_type_vocab_size": 16, "use_task_id": True, "task_id": 0, "intermediate_size": 24}
    config = read(tmp_path, told, "model_config.json")
    assert (config.tasks, config.intermediate_size) == (16, 24)


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


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("ErnieGramModel", "erniegram"),
        ("ErnieMModel", "erniem"),
        ("XLMRobertaModel", "xlmroberta"),
        ("GPT2LMHeadModel", "gpt2"),
        ("ErnieCtmModel", "erniectm"),
        ("XLNetModel", "xlnet"),
    ],
)
def test_other_families_are_refused_by_name(tmp_path, name, family):
    with pytest.raises(
        WeightsError, match=rf"config\.json: model_type is '{family}'; only one of bert, ernie, roberta"
    ):
        read(tmp_path, FLAT | {"architectures": [name]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "xlm-roberta"}, "model_type.*xlm-roberta"),
        ({"model_type": ["bert"]}, "model_type"),
        ({"is_decoder": True}, "is_decoder True is not supported, only False"),
        ({"use_task_id": True}, "use_task_id is set, but task_id 0 is outside task_type_vocab_size 0"),
        ({"use_task_id": True, "task_type_vocab_size": 3, "task_id": 3}, "task_id 3 is outside .* 3"),
        ({"use_task_id": 1}, "use_task_id"),
        ({"type_vocab_size": -1}, "type_vocab_size"),
        ({"position_offset": 20}, "position_offset 20 leaves none of the 20 positions"),
        ({"model_type": "roberta", "pad_token_id": None}, "pad_token_id"),
        ({"model_type": "ernie", "pool_act": "relu"}, "pool_act.*relu"),
    ],
)
def test_values_that_make_no_encoder_are_refused(tmp_path, change, message):
    with pytest.raises(WeightsError, match=rf"config\.json: .*{message}"):
        read(tmp_path, FLAT | change)


def test_robertas_positions_start_after_the_padding_id():
    config = EncoderConfig.from_dict(FLAT | {"model_type": "roberta", "type_vocab_size": 1})
    assert (config.pad_token_id, config.position_offset, config.max_length) == (1, 2, 18)
    config = EncoderConfig.from_dict(FLAT | {"model_type": "roberta", "pad_token_id": 4, "cls_token_id": 0})
    assert config.position_offset == 5


@pytest.mark.parametrize("cls", [{}, {"cls_token_id": 101}, {"cls_token_id": 0}], ids=["unsaid", "101", "0"])
def test_roberta_wwm_is_a_bert_whatever_its_class_is_called(cls):
    """PaddleNLP calls both RobertaModel, and names no cls_token_id in the configs of RobertaModels that are wwm."""
    told = FLAT | {"pad_token_id": 0, "type_vocab_size": 2} | cls
    wwm = EncoderConfig.from_dict(told | {"model_type": "roberta"})
    assert (wwm.model_type, wwm.position_offset, wwm.pad_token_id) == ("bert", 0, 0)
    for nested in (
        told | {"init_class": "RobertaModel"},
        {"init_args": [told | {"init_class": "RobertaModel"}], "init_class": "RobertaForSequenceClassification"},
    ):
        assert EncoderConfig.from_dict(nested) == wwm
        inner = nested["init_args"][0] if "init_args" in nested else nested
        del inner["pad_token_id"]  # where nothing is said, PaddleNLP's RobertaModel pads with 0
        assert EncoderConfig.from_dict(nested) == wwm


def test_a_roberta_that_names_no_padding_is_hugging_faces():
    config = EncoderConfig.from_dict(FLAT | {"architectures": ["RobertaForMaskedLM"], "cls_token_id": 101})
    assert (config.model_type, config.pad_token_id, config.position_offset) == ("roberta", 1, 2)


def test_our_own_roberta_that_pads_with_0_says_so_by_its_offset():
    config = EncoderConfig.from_dict(FLAT | {"model_type": "roberta", "pad_token_id": 0, "position_offset": 1})
    assert (config.model_type, EncoderConfig.from_dict(config.to_dict())) == ("roberta", config)


@pytest.mark.parametrize("name", ["BertModel", "ErnieModel", "RobertaModel"])
def test_what_a_nested_config_leaves_out_is_paddlenlps_default(name):
    config = EncoderConfig.from_dict({"vocab_size": 100, "init_class": name})
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (768, 12, 12)
    assert (config.intermediate_size, config.max_position_embeddings, config.type_vocab_size) == (3072, 512, 16)
    assert (config.pad_token_id, config.layer_norm_eps, config.position_offset) == (0, 1e-12, 0)


@pytest.mark.parametrize("values", [FLAT | {"model_type": "ernie"}, NESTED], ids=["flat", "nested"])
def test_ernie_has_three_tasks_unless_told(values):
    assert EncoderConfig.from_dict(values | {"use_task_id": True}).tasks == 3


def test_paddlenlps_default_for_cls_does_not_make_roberta_a_bert():
    """It writes cls_token_id 101 unless told; RoBERTa proper is known by its padding."""
    config = EncoderConfig.from_dict(FLAT | {"model_type": "roberta", "pad_token_id": 1, "cls_token_id": 101})
    assert (config.model_type, config.position_offset, config.pad_token_id) == ("roberta", 2, 1)


def test_paddlenlps_bert_pools_with_tanh_or_nothing():
    assert EncoderConfig.from_dict(FLAT | {"pool_act": "tanh"}).pool_act == "tanh"
    assert EncoderConfig.from_dict(FLAT | {"pool_act": "relu"}).pool_act == "linear"


def test_unknown_keys_are_named_once_and_do_no_harm(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        config = read(tmp_path, FLAT | {"rotary": 3, "num_labels": 2, "id2label": {}, "hiden_act": "relu"})
    assert config.hidden_act == "gelu"
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'config.json'}: not known and passed over: rotary, hiden_act"
    ]


def test_a_missing_key_may_be_an_unknown_one(tmp_path):
    values = {"hiden_size" if key == "hidden_size" else key: value for key, value in FLAT.items()}
    with pytest.raises(WeightsError, match=r"config\.json: keys are missing: hidden_size; not known: hiden_size$"):
        read(tmp_path, values)


def test_the_newest_form_in_a_folder_is_read(tmp_path):
    assert read(tmp_path, STATIC, "ernie_config.small.json").vocab_size == 100
    assert read(tmp_path, STATIC | {"vocab_size": 101}, "ernie_config.json").vocab_size == 101
    assert read(tmp_path, NESTED | {"vocab_size": 102}, "model_config.json").vocab_size == 102
    assert read(tmp_path, FLAT | {"vocab_size": 103}, "config.json").vocab_size == 103


def test_static_weights_go_with_their_own_config(tmp_path):
    other = FLAT | {"vocab_size": 103, "layer_norm_eps": 1e-12}
    read(tmp_path, STATIC, "ernie_config.json")
    assert read(tmp_path, other, "config.json").vocab_size == 103
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "word_embedding").write_bytes(b"")
    config = EncoderConfig.read(tmp_path)
    assert (config.vocab_size, config.layer_norm_eps) == (100, 1e-5)
    (tmp_path / "ernie_config.json").rename(tmp_path / "ernie_config.base.json")
    assert EncoderConfig.read(tmp_path) == config
    (tmp_path / "model_state.pdparams").write_bytes(b"")  # these are read, and the others are not
    assert EncoderConfig.read(tmp_path).vocab_size == 103


def test_a_folder_without_a_config_or_with_several(tmp_path):
    with pytest.raises(WeightsError, match=r"cannot read the model's config: there is none of config\.json, model_con"):
        EncoderConfig.read(tmp_path)
    read(tmp_path, STATIC, "ernie_config.base.json")
    with pytest.raises(WeightsError, match=r"several configs, name one: ernie_config\.base\.json, ernie_config\.xb"):
        read(tmp_path, STATIC, "ernie_config.xbase.json")
    assert EncoderConfig.read(tmp_path / "ernie_config.xbase.json").hidden_act == "relu"


def test_a_file_that_is_nested_too_deep_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"a":' + "[" * 200_000 + "]" * 200_000 + "}")
    with pytest.raises(WeightsError, match=r"config\.json: not a model's config: nested too deep"):
        EncoderConfig.read(tmp_path)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_read_as_it_was_written(tmp_path, variant, caplog):
    config = attrs.evolve(VARIANTS[variant], initializer_range=0.03)
    config.write(tmp_path)
    assert EncoderConfig.read(tmp_path) == config
    assert not caplog.records
