import json

import pytest

from onion.errors import WeightsError
from onion.models.tokenizer import Tokenizer

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b"]


def folder_of(folder, **settings):
    (folder / "vocab.txt").write_text("\n".join(VOCAB))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize(
    ("key", "value"),
    [(key, value) for key in ("do_lower_case", "tokenize_chinese_chars") for value in (None, 1, "no")]
    + [(key, value) for key in ("strip_accents", "add_prefix_space") for value in (0, "x")],
)
def test_a_switch_that_is_none_is_named_with_file_and_key(tmp_path, key, value):
    folder_of(tmp_path, **{key: value})
    with pytest.raises(WeightsError, match=rf"tokenizer_config\.json: {key} is .*, not true or false"):
        Tokenizer.from_pretrained(tmp_path)


def test_the_switches_are_not_asked_where_tokenizer_json_decides(tmp_path):
    Tokenizer.from_pretrained(folder_of(tmp_path)).save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": null}')
    assert Tokenizer.from_pretrained(tmp_path)(["A"])[0].ids.tolist() == [2, 5, 3]


def test_settings_of_a_hundred_thousand_brackets(tmp_path):
    (folder_of(tmp_path) / "tokenizer_config.json").write_text("[" * 100_000)
    with pytest.raises(WeightsError, match=r"tokenizer_config\.json: not a JSON file"):
        Tokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize("normalizer", ["BertNormalizer", "Lowercase", None])
def test_a_tokenizer_that_splits_texts_at_nothing(tmp_path, normalizer):
    """No reference does, so no character needs a stand-in."""
    Tokenizer.from_pretrained(folder_of(tmp_path)).save_pretrained(tmp_path)
    stored = json.loads((tmp_path / "tokenizer.json").read_text())
    if normalizer != "BertNormalizer":
        stored["normalizer"] = normalizer and {"type": normalizer}
    (tmp_path / "tokenizer.json").write_text(json.dumps({**stored, "pre_tokenizer": None}))
    assert Tokenizer.from_pretrained(tmp_path)(["ab", "\u061d"])[0].ids.tolist() == [2, 5, 7, 3]
