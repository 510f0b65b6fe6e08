import json

import pytest

from onion.errors import WeightsError
from onion.models.tokenizer import Tokenizer

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]


def folder_of(folder, **settings):
    (folder / "vocab.txt").write_text("\n".join(VOCAB))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("stored", [5, True, ["a"], {"x": 1}, {"content": 5}])
def test_what_is_no_token_is_named_with_file_and_key(tmp_path, stored):
    folder_of(tmp_path, cls_token=stored)
    with pytest.raises(WeightsError, match=r"tokenizer_config\.json: cls_token is .*, not a token"):
        Tokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize("stored", [None, "", "[CLS]", {"content": "[CLS]", "lstrip": False}])
def test_a_token_as_a_text_as_an_object_and_none(tmp_path, stored):
    assert Tokenizer.from_pretrained(folder_of(tmp_path, cls_token=stored)).cls_id == 2


def test_two_parts_have_two_tokens(tmp_path):
    folder_of(tmp_path, cls_token="[SEP]")
    message = r"vocab\.txt: cls_token '\[SEP\]' and sep_token '\[SEP\]' have the same id, 3; give each part a token"
    with pytest.raises(WeightsError, match=message):
        Tokenizer.from_pretrained(tmp_path)


def test_other_parts_may_share_a_token(tmp_path):
    """RoBERTa's text begins and ends with what begins and ends a sentence to other models."""
    tokenizer = Tokenizer.from_pretrained(folder_of(tmp_path, bos_token="[CLS]", eos_token="[SEP]"))
    assert (tokenizer.cls_id, tokenizer.sep_id) == (2, 3)
