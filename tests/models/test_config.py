import json
import os
import stat

import attrs
import pytest

from onion.errors import WeightsError
from onion.models.config import EncoderConfig

BERT = {
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
    "model_type": "bert",
    "architectures": ["BertModel"],
    "position_embedding_type": "absolute",
}


def write(path, values):
    path.write_text(values if isinstance(values, str) else json.dumps(values), encoding="utf-8")
    return path


def test_reads_hugging_faces_file_and_passes_over_what_is_not_the_encoders(tmp_path):
    config = EncoderConfig.read(write(tmp_path / "config.json", BERT))
    assert config.hidden_size == 384
    assert config.head_size == 32
    assert config.layer_norm_eps == 1e-12
    assert config.hidden_act == "gelu"


def test_reads_the_folder_too(tmp_path):
    write(tmp_path / "config.json", BERT)
    assert EncoderConfig.read(tmp_path).vocab_size == 30522


def test_what_is_written_is_read_again(tmp_path):
    config = attrs.evolve(EncoderConfig.from_dict(BERT), layer_norm_eps=1e-5, hidden_act="relu", type_vocab_size=4)
    config.write(tmp_path)
    assert EncoderConfig.read(tmp_path / "config.json") == config
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_a_written_file_has_ordinary_permissions(tmp_path):
    EncoderConfig.from_dict(BERT).write(tmp_path)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "config.json").stat().st_mode) == 0o666 & ~mask


def test_missing_keys_are_all_named(tmp_path):
    values = {key: value for key, value in BERT.items() if key not in ("vocab_size", "hidden_size")}
    with pytest.raises(WeightsError, match=r"config\.json: keys are missing: vocab_size, hidden_size"):
        EncoderConfig.read(write(tmp_path / "config.json", values))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "gpt2"}, "model_type.*gpt2"),
        ({"position_embedding_type": "relative_key"}, "relative_key.*not supported"),
        ({"num_attention_heads": 7}, "384 is not divisible by num_attention_heads 7"),
        ({"hidden_act": "swish"}, "hidden_act.*swish"),
        ({"hidden_size": "384"}, "hidden_size"),
        ({"hidden_size": None}, "hidden_size"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob"),
        ({"pad_token_id": 30522}, "pad_token_id 30522"),
    ],
)
def test_unsupported_values_are_refused_by_name(tmp_path, change, message):
    with pytest.raises(WeightsError, match=message):
        EncoderConfig.read(write(tmp_path / "config.json", BERT | change))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("vocab_size", True),
        ("vocab_size", 1.0),
        ("pad_token_id", -1),
        ("layer_norm_eps", float("nan")),
        ("layer_norm_eps", -1),
        ("layer_norm_eps", 0),
        ("layer_norm_eps", "1e-12"),
        ("initializer_range", -0.1),
        ("initializer_range", float("inf")),
        ("initializer_range", 10**400),
        ("initializer_range", True),
        ("hidden_dropout_prob", float("nan")),
        ("use_task_id", 1),
        ("hidden_act", ["gelu"]),
        ("model_type", None),
    ],
)
def test_values_out_of_range_are_the_same_error_however_a_config_is_made(setting, value):
    config = EncoderConfig.from_dict(BERT)
    said = f"^{setting} must be .*, got .*$"
    read = r"^model_type is .*; only one of .* is supported$" if setting == "model_type" else said  # before its keys
    for make, message in (
        (lambda: EncoderConfig(**config.to_dict() | {setting: value}), said),
        (lambda: attrs.evolve(config, **{setting: value}), said),
        (lambda: config.changed(**{setting: value}), said),
        (lambda: EncoderConfig.from_dict(BERT | {setting: value}), read),
    ):
        with pytest.raises(WeightsError, match=message):
            make()


def test_a_setting_that_is_none_is_named_with_those_that_are():
    with pytest.raises(WeightsError, match=r"no setting hidden_dropout; it has vocab_size, .*, hidden_dropout_prob,"):
        EncoderConfig.from_dict(BERT).changed(hidden_dropout=0)


@pytest.mark.parametrize(
    ("first", "change", "offset"),
    [
        ({}, {"model_type": "roberta", "pad_token_id": 1}, 2),
        ({"model_type": "roberta", "pad_token_id": 1}, {"pad_token_id": 4}, 5),
        ({"model_type": "roberta", "pad_token_id": 1}, {"model_type": "ernie"}, 0),
    ],
)
def test_positions_that_would_no_longer_fit_the_family_are_refused(first, change, offset):
    config = EncoderConfig.from_dict(BERT | first)
    with pytest.raises(WeightsError, match=rf"does not go with .*; give position_offset {offset} too"):
        attrs.evolve(config, **change)
    assert config.changed(**change, position_offset=offset).max_length == 512 - offset


@pytest.mark.parametrize(("content", "message"), [("{", "not a JSON file"), ("[1]", "list, not an object")])
def test_broken_files_are_refused(tmp_path, content, message):
    with pytest.raises(WeightsError, match=message):
        EncoderConfig.read(write(tmp_path / "config.json", content))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(WeightsError, match=r"nowhere.config\.json: cannot read"):
        EncoderConfig.read(tmp_path / "nowhere" / "config.json")


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(WeightsError, match="cannot write"):
        EncoderConfig.from_dict(BERT).write(tmp_path / "nowhere" / "config.json")
