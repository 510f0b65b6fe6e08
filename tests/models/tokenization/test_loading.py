import json

import pytest

from onion.errors import WeightsError
from onion.models.tokenizer import Tokenizer
from tests.models.tokenization.folders import SPECIAL, vocab_folder

VOCAB = [*SPECIAL, "a", "b", "##b"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        *(
            (key, value, f"{key} is .*, not true or false")
            for key in ("do_lower_case", "tokenize_chinese_chars")
            for value in (None, 1, "no")
        ),
        *(
            (key, value, f"{key} is .*, not true or false")
            for key in ("strip_accents", "add_prefix_space")
            for value in (0, "x")
        ),
        *(("cls_token", value, "cls_token is .*, not a token") for value in (5, True, ["a"], {"x": 1}, {"content": 5})),
    ],
)
def test_a_bad_setting_is_named_with_file_and_key(tmp_path, key, value, message):
    vocab_folder(tmp_path, VOCAB, **{key: value})
    with pytest.raises(WeightsError, match=rf"tokenizer_config\.json: {message}"):
        Tokenizer.from_pretrained(tmp_path)


def test_the_flags_are_not_read_if_tokenizer_json_decides(tmp_path):
    Tokenizer.from_pretrained(vocab_folder(tmp_path, VOCAB)).save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": null}')
    assert Tokenizer.from_pretrained(tmp_path)(["A"])[0].ids.tolist() == [2, 5, 3]


@pytest.mark.parametrize("normalizer", ["BertNormalizer", "Lowercase", None])
def test_a_tokenizer_that_does_not_split_texts(tmp_path, normalizer):
    """No reference does this, so no character is replaced."""
    Tokenizer.from_pretrained(vocab_folder(tmp_path, VOCAB)).save_pretrained(tmp_path)
    stored = json.loads((tmp_path / "tokenizer.json").read_text())
    if normalizer != "BertNormalizer":
        stored["normalizer"] = normalizer and {"type": normalizer}
    (tmp_path / "tokenizer.json").write_text(json.dumps({**stored, "pre_tokenizer": None}))
    assert Tokenizer.from_pretrained(tmp_path)(["ab", "\u061d"])[0].ids.tolist() == [2, 5, 7, 3]


# -- special tokens ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [None, "", "[CLS]", {"content": "[CLS]", "lstrip": False}])
def test_a_token_may_be_a_string_an_object_or_none(tmp_path, stored):
    assert Tokenizer.from_pretrained(vocab_folder(tmp_path, VOCAB, cls_token=stored)).cls_id == 2


def test_missing_special_tokens_are_all_named(tmp_path):
    vocab = [token for token in VOCAB if token not in ("[CLS]", "[MASK]")]
    with pytest.raises(WeightsError, match=r"vocab\.txt: special tokens are missing .*: \[CLS\], \[MASK\]"):
        Tokenizer.from_pretrained(vocab_folder(tmp_path, vocab))


def test_two_parts_have_two_tokens(tmp_path):
    vocab_folder(tmp_path, VOCAB, cls_token="[SEP]")
    message = r"vocab\.txt: cls_token '\[SEP\]' and sep_token '\[SEP\]' have the same id, 3; use a different token for"
    with pytest.raises(WeightsError, match=message):
        Tokenizer.from_pretrained(tmp_path)


def test_other_parts_may_share_a_token(tmp_path):
    """RoBERTa's text begins and ends with tokens that begin and end a sentence in other models."""
    tokenizer = Tokenizer.from_pretrained(vocab_folder(tmp_path, VOCAB, bos_token="[CLS]", eos_token="[SEP]"))
    assert (tokenizer.cls_id, tokenizer.sep_id) == (2, 3)
