import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.models.tokenization.windows import spans
from onion.models.tokenizer import Tokenizer
from tests.models.tokenization.folders import SPECIAL, bpe_folder, vocab_folder

TINY = Path(__file__).parent.parent / "golden" / "ernie_tiny_tokenizer"
WORDS = [*SPECIAL, "a", "b", "film", "##s", "中", "."]
UNITS = ["a", "films", "在", " ", "b.", "中国", "hello", " é", "İ", "[MASK]", "👍"]
texts_of = st.lists(st.sampled_from(UNITS), max_size=25).map("".join)


def bert(folder):
    return vocab_folder(folder, WORDS)


def template(folder):
    """Hugging Face's tokenizer.json of BERT: the special tokens stand in a template."""
    single = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    single.append({"SpecialToken": {"id": "[SEP]", "type_id": 0}})
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    special = {token: {"id": token, "ids": [WORDS.index(token)], "tokens": [token]} for token in ("[CLS]", "[SEP]")}
    Tokenizer.from_pretrained(bert(folder)).save_pretrained(folder)
    stored = json.loads((folder / "tokenizer.json").read_text())
    stored["post_processor"] = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}
    (folder / "tokenizer.json").write_text(json.dumps(stored))
    return folder


def tiny(folder):
    pytest.importorskip("sentencepiece")
    return TINY


@pytest.fixture(scope="module", params=[bert, template, bpe_folder, tiny], ids=["bert", "template", "roberta", "tiny"])
def tokenizer(request, tmp_path_factory):
    return Tokenizer.from_pretrained(request.param(tmp_path_factory.mktemp("tokenizer")))


def rows(found):
    """All of an encoding, a row for each token."""
    return np.column_stack([found.ids, found.types, found.offsets, found.words]).tolist()


@given(text=texts_of, max_length=st.integers(3, 12), stride=st.integers(1, 12), split=st.booleans())
def test_windows_of_a_text(tokenizer, text, max_length, stride, split):
    given_text = text.split() if split else text
    (whole,) = tokenizer([given_text], max_length=10**6, offsets=True, pre_split=split)
    (found,) = tokenizer.windows([given_text], None, max_length, stride, pre_split=split)
    tokens, begin = rows(whole)[1:-1], 0
    for number, window in enumerate(found):
        length = min(len(tokens) - begin, max_length - 2)
        assert rows(window) == [rows(whole)[0], *tokens[begin : begin + length], rows(whole)[-1]]
        assert len(window) <= max_length
        assert window.truncated == (len(found) > 1)
        assert (begin + length == len(tokens)) == (number == len(found) - 1)  # the last one ends with the text
        begin += min(length, stride)


@given(
    first=texts_of,
    second=texts_of,
    max_length=st.integers(8, 20),
    stride=st.integers(1, 12),
    max_first=st.none() | st.integers(1, 3),
)
def test_windows_of_a_pair(tokenizer, first, second, max_length, stride, max_first):
    frame = len(tokenizer([""], [""])[0])
    (alone,) = tokenizer([first], max_length=10**6, offsets=True)
    kept = len(alone) - 2 if max_first is None else min(max_first, len(alone) - 2)
    if kept >= max_length - frame:
        with pytest.raises(DataError, match=f"text 0 has {kept} tokens and leaves no room"):
            tokenizer.windows([first], [second], max_length, stride, max_first=max_first)
        return
    (whole,) = tokenizer([first], [second], 10**6, offsets=True)
    (found,) = tokenizer.windows([first], [second], max_length, stride, max_first=max_first)
    all_of, cut_off = rows(whole), len(alone) - 2 - kept
    head = all_of[: kept + 1] + all_of[len(alone) - 1 : len(alone) + frame - 3]
    tokens, begin = all_of[len(alone) + frame - 3 : -1], 0
    for number, window in enumerate(found):
        length = min(len(tokens) - begin, max_length - frame - kept)
        assert rows(window) == [*head, *tokens[begin : begin + length], all_of[-1]]
        assert len(window) <= max_length
        assert window.truncated == (len(found) > 1 or cut_off > 0)
        assert (begin + length == len(tokens)) == (number == len(found) - 1)
        begin += min(length, stride)


@given(first=texts_of, second=texts_of)
def test_one_window_is_what_a_call_gives(tokenizer, first, second):
    for arguments in (([first],), ([first], [second])):
        (called,) = tokenizer(*arguments, max_length=500, offsets=True)
        ((window,),) = tokenizer.windows(*arguments, max_length=500)
        assert rows(window) == rows(called)
        assert not window.truncated
        assert window.ids.dtype == window.types.dtype == window.offsets.dtype == window.words.dtype == np.int64


@given(length=st.integers(0, 60), room=st.integers(1, 20), stride=st.integers(1, 30))
def test_spans_are_those_of_run_squad(length, room, stride):
    expected, start = [], 0
    while start < length:
        size = min(length - start, room)
        expected.append((start, start + size))
        if start + size == length:
            break
        start += min(size, stride)
    assert list(spans(length, room, stride)) == (expected or [(0, 0)])


def test_many_texts_and_none(tokenizer):
    assert tokenizer.windows([]) == []
    assert tokenizer.windows([], []) == []
    found = tokenizer.windows(["a", "", "a a a a a a"], max_length=5, stride=2)
    assert [len(windows) for windows in found][:2] == [1, 1]
    assert len(found[2]) > 1
    assert len(tokenizer(["a a a a a a"], max_length=4)[0]) == 4  # calls cut as before


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        ((["a"], ["a", "b"]), {}, "1 texts and 2 pairs do not match"),
        (("a",), {}, "a list of texts"),
        ((["a"], None, 2), {}, "max_length 2 leaves no room for text beside 2 special tokens"),
        ((["a"], None, 9, 0), {}, "stride must be >= 1, got 0"),
        ((["a"], ["b"]), {"max_first": 0}, "max_first must be >= 1, and needs pairs, got 0"),
        ((["a"],), {"max_first": 3}, "max_first must be >= 1, and needs pairs, got 3"),
        (
            (["b", "b a b a b a b a"], ["a", "a"], 9),
            {},
            r"text 1 has \d+ tokens and leaves no room .*, or set max_first",
        ),
        ((["a"],), {"pre_split": True}, "text 0 is a str, not a list of words"),
    ],
)
def test_bad_calls_are_refused(tokenizer, arguments, more, message):
    with pytest.raises(DataError, match=message):
        tokenizer.windows(*arguments, **more)


def test_a_lone_surrogate_is_refused(tmp_path):
    with pytest.raises(DataError, match="text or pair 1 contains a lone surrogate"):
        Tokenizer.from_pretrained(bpe_folder(tmp_path)).windows(["a", "\ud800"])
