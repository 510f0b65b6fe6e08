import json

import numpy as np
import pytest

from onion.errors import DataError, WeightsError
from onion.models.tokenizer import Tokenizer

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "film", "##s", "über", "uber", "中", "A", "."]
IDS = {token: index for index, token in enumerate(VOCAB)}


def ids(*tokens):
    return [IDS[token] for token in tokens]


def vocab_folder(folder, vocab=VOCAB, **settings):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocab) + "\n", encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture
def tokenizer(tmp_path):
    return Tokenizer.from_pretrained(vocab_folder(tmp_path / "vocab"))


def test_one_text(tokenizer):
    (found,) = tokenizer(["A films 中a ?"])
    assert found.ids.tolist() == ids("[CLS]", "a", "film", "##s", "中", "a", "[UNK]", "[SEP]")
    assert found.types.tolist() == [0] * 8
    assert found.ids.dtype == found.types.dtype == np.int64
    assert not found.truncated
    assert len(found) == 8


def test_a_pair(tokenizer):
    (found,) = tokenizer(["a b"], ["c"])
    assert found.ids.tolist() == ids("[CLS]", "a", "b", "[SEP]", "c", "[SEP]")
    assert found.types.tolist() == [0, 0, 0, 0, 1, 1]


def test_special_ids_and_size(tokenizer):
    special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
    assert special == (0, 1, 2, 3, 4)
    assert tokenizer.vocab_size == len(VOCAB)


def test_nothing_and_empty_texts(tokenizer):
    assert tokenizer([]) == []
    assert [found.ids.tolist() for found in tokenizer(["", " "])] == [ids("[CLS]", "[SEP]")] * 2


def test_texts_are_cut_and_say_so(tokenizer):
    exact, longer = tokenizer(["a b c", "a b c a"], max_length=5)
    assert exact.ids.tolist() == longer.ids.tolist() == ids("[CLS]", "a", "b", "c", "[SEP]")
    assert not exact.truncated
    assert longer.truncated


@pytest.mark.parametrize(("first", "second"), [("a a a a a", "b"), ("a", "b b b b b")])
def test_of_a_pair_the_longer_is_cut(tokenizer, first, second):
    (found,) = tokenizer([first], [second], max_length=7)
    kept = [VOCAB[i] for i in found.ids]
    assert len(kept) == 7
    assert {"a", "b"} <= set(kept)
    assert kept.count("a") + kept.count("b") == 4
    assert min(kept.count("a"), kept.count("b")) == 1
    assert found.truncated
    assert not tokenizer([first], [second], max_length=9)[0].truncated


def test_max_length_holds_for_its_call_only(tokenizer):
    assert len(tokenizer(["a b c"], max_length=3)[0]) == 3
    assert len(tokenizer(["a b c"])[0]) == 5


def test_lower_casing_follows_the_config(tmp_path):
    lower = Tokenizer.from_pretrained(vocab_folder(tmp_path / "lower"))
    cased = Tokenizer.from_pretrained(vocab_folder(tmp_path / "cased", do_lower_case=False))
    assert lower(["A Über"])[0].ids.tolist() == ids("[CLS]", "a", "uber", "[SEP]")
    assert cased(["A über"])[0].ids.tolist() == ids("[CLS]", "A", "über", "[SEP]")


def test_special_tokens_may_have_other_names(tmp_path):
    vocab = ["<pad>" if token == "[PAD]" else token for token in VOCAB]
    folder = vocab_folder(tmp_path, vocab[::-1], pad_token={"content": "<pad>"})
    assert Tokenizer.from_pretrained(folder).pad_id == len(VOCAB) - 1


def test_saved_is_loaded_the_same_from_tokenizer_json(tmp_path, tokenizer):
    texts = ["A films 中a ?", "a [MASK] b"]
    before = tokenizer(texts, max_length=6)
    tokenizer.save_pretrained(tmp_path / "saved")
    assert sorted(p.name for p in (tmp_path / "saved").iterdir()) == ["tokenizer.json", "tokenizer_config.json"]
    after = Tokenizer.from_pretrained(tmp_path / "saved")(texts, max_length=6)
    assert [e.ids.tolist() for e in after] == [e.ids.tolist() for e in before]
    assert tokenizer(texts, max_length=6)[1].ids.tolist() == before[1].ids.tolist()
    assert before[1].ids.tolist() == ids("[CLS]", "a", "[MASK]", "b", "[SEP]")


def test_stored_truncation_and_padding_are_switched_off(tmp_path, tokenizer):
    tokenizer._backend.enable_truncation(4)
    tokenizer._backend.enable_padding(length=64)
    (tmp_path / "tokenizer.json").write_text(tokenizer._backend.to_str())
    assert len(Tokenizer.from_pretrained(tmp_path)(["a b c a"])[0]) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], ["b", "c"]), "1 texts and 2 pairs"),
        (("a",), "a list of texts"),
        ((["a", None],), "text 1 is a NoneType"),
        ((["a"], [3]), "pair 0 is a int"),
        ((["a"], None, 2), "max_length 2 leaves no room"),
        ((["a"], ["b"], 3), "max_length 3 leaves no room"),
    ],
)
def test_bad_calls_are_refused(tokenizer, arguments, message):
    with pytest.raises(DataError, match=message):
        tokenizer(*arguments)


def test_missing_and_damaged_files_are_named(tmp_path):
    with pytest.raises(WeightsError, match="neither a folder nor a known model"):
        Tokenizer.from_pretrained(tmp_path / "nowhere")
    with pytest.raises(WeightsError, match=r"neither tokenizer\.json nor vocab\.txt"):
        Tokenizer.from_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"')
    with pytest.raises(WeightsError, match=r"tokenizer\.json: damaged"):
        Tokenizer.from_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(WeightsError, match=r"tokenizer_config\.json: not a JSON file"):
        Tokenizer.from_pretrained(tmp_path)


def test_a_vocabulary_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WeightsError, match=r"vocab\.txt: cannot read"):
        Tokenizer.from_pretrained(tmp_path)


def test_missing_special_tokens_are_all_named(tmp_path):
    vocab = [token for token in VOCAB if token not in ("[CLS]", "[MASK]")]
    with pytest.raises(WeightsError, match=r"vocab\.txt: special tokens are missing .*: \[CLS\], \[MASK\]"):
        Tokenizer.from_pretrained(vocab_folder(tmp_path, vocab))
