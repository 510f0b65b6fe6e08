"""The way by words gives what the library gives, or leaves it to the library."""

import copy

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers

from onion.errors import DataError
from onion.models.tokenization import byte_bpe, word_cache, wordpiece
from onion.models.tokenization.word_cache import Words
from onion.models.tokenizer import Tokenizer
from tests.models.tokenization.folders import bpe_folder

TOKENS = ["a", "##a", "b", "##b", "ab", "A", "é", "e", "##e", "#", "中", ".", "!", "，", "σ", "##ς", "°", "1", "##1"]
VOCAB = {token: number for number, token in enumerate([*wordpiece.SPECIAL_TOKENS.values(), *TOKENS])}
ODD = "aabbAB éeÉ\u0301\u0328中国，。.!#°€1 \t\n\x1c\u3000ΣςİıßＡ가👍\u200d\ufe0f\u0378"
MARK = "\u302e"  # of Hangul: no accent, but a mark that stands behind others
TEXT = st.text(st.sampled_from(ODD), max_size=40)
LETTERS = st.text(st.sampled_from("ab 1"), max_size=40)


def backend(style="wordpiece", **settings):
    return wordpiece.build(VOCAB, wordpiece.SPECIAL_TOKENS, settings, style)


def plain(found):
    return [(one.ids.tolist(), one.types.tolist(), one.truncated) for one in found]


def by_library(tokenizer, *texts, **more):
    other = copy.deepcopy(tokenizer)
    other._words = None
    return plain(other(*texts, **more))


def of(tokenizer, texts, pairs=None, max_length=512):
    found = tokenizer._words(texts, pairs, max_length, "longest_first")
    return None if found is None else plain(found)


@pytest.fixture(
    scope="module", params=[(style, lower) for style in word_cache.STYLES for lower in (True, False)], ids=str
)
def tokenizer(request):
    style, lower = request.param
    made = Tokenizer(backend(style, do_lower_case=lower))
    assert made._words is not None
    return made


@given(texts=st.lists(TEXT | LETTERS, max_size=4), length=st.integers(3, 20))
def test_texts_of_every_style(tokenizer, texts, length):
    assert of(tokenizer, tokenizer._prepare(texts, False, False).inputs, None, length) == by_library(
        tokenizer, texts, max_length=length
    )


@given(pairs=st.lists(st.tuples(TEXT | LETTERS, LETTERS), min_size=1, max_size=3), length=st.integers(4, 24))
def test_pairs_of_every_style(tokenizer, pairs, length):
    firsts, seconds = map(list, zip(*pairs, strict=True))
    prepared = [tokenizer._prepare(texts, False, False).inputs for texts in (firsts, seconds)]
    assert of(tokenizer, *prepared, length) == by_library(tokenizer, firsts, seconds, max_length=length)


@pytest.mark.parametrize("text", ["a [SEP] b", "[MASK]", f"a{MARK}b", "a\ud800"])
def test_a_text_that_is_more_than_its_words_is_left_to_the_library(text):
    tokenizer = Tokenizer(backend())
    assert of(tokenizer, ["a", text]) is None
    assert of(tokenizer, ["a", "b"], ["b", text]) is None
    assert of(tokenizer, ["a"]) is not None


def test_special_tokens_in_texts_stay_special():
    tokenizer = Tokenizer(backend())
    assert plain(tokenizer(["a [SEP]"])) == [([2, VOCAB["a"], 3, 3], [0, 0, 0, 0], False)]


def test_other_truncations_are_left_to_the_library():
    tokenizer = Tokenizer(backend())
    assert tokenizer._words(["a"], ["b"], 8, "only_second") is None
    with pytest.raises(DataError, match="alone is too long"):
        tokenizer(["a a a a a a"], ["b"], max_length=6, truncation="only_second")


def test_what_the_library_refuses_it_explains():
    nowhere = changed(model=models.WordPiece(VOCAB, unk_token="[NONE]"))
    with pytest.raises(DataError, match="text 1"):
        Tokenizer(nowhere)(["a", "x"])


def test_a_word_is_cut_once(monkeypatch):
    tokenizer = Tokenizer(backend())
    of(tokenizer, ["ab abb", "abb"])
    pieces = tokenizer._words._pieces
    assert set(pieces) == {"ab", "abb"}
    monkeypatch.setattr(pieces, "_model", None)
    assert of(tokenizer, ["abb ab"]) == [([2, VOCAB["ab"], VOCAB["##b"], VOCAB["ab"], 3], [0] * 5, False)]


def test_no_more_words_are_remembered_than_there_is_room_for_and_no_long_ones(monkeypatch):
    monkeypatch.setattr(word_cache, "KEPT", 2)
    tokenizer = Tokenizer(backend())
    texts = ["a" * 101, "a b ab abb", "abb ab"]
    assert of(tokenizer, texts) == by_library(tokenizer, texts, max_length=512)
    assert set(tokenizer._words._pieces) == {"a", "b"}


def test_copies_have_the_fast_way_too():
    tokenizer = Tokenizer(backend())
    tokenizer(["a [SEP] b"], max_length=3)  # the library has a truncation set now
    assert of(copy.deepcopy(tokenizer), ["ab a"]) == of(tokenizer, ["ab a"])


def changed(**parts):
    made = backend()
    for name, part in parts.items():
        setattr(made, name, part)
    return made


def with_token(**settings):
    made = backend()
    made.add_tokens([tokenizers.AddedToken("Ab", **settings)])
    return made


@pytest.mark.parametrize(
    ("made", "suits"),
    [
        (backend(), True),
        (backend("sentencepiece-characters"), False),
        (changed(normalizer=normalizers.NFC()), False),
        (changed(normalizer=normalizers.Sequence([normalizers.Lowercase()])), False),
        (changed(pre_tokenizer=pre_tokenizers.ByteLevel()), False),
        (with_token(normalized=True), False),
        (with_token(normalized=False), True),
        (tokenizers.Tokenizer(models.WordPiece(VOCAB, unk_token="[UNK]")), False),
    ],
)
def test_only_tokenizers_that_take_words_alone_are_suited(made, suits):
    assert Words.suit(made) is suits


def test_byte_level_bpe_is_not(tmp_path):
    vocab = {token: number for number, token in enumerate([*byte_bpe.SPECIAL_TOKENS.values(), "a", "b", "ab"])}
    assert Tokenizer.from_pretrained(bpe_folder(tmp_path, ["a b"], vocab))._words is None
