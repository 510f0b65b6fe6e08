"""ERNIE tiny's tokenizer: against a plain reference in Python, and digests of what PaddleNLP's makes of real texts."""

import json
import pickle
import shutil
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError, WeightsError
from onion.models.tokenizer import Tokenizer
from scripts.make_golden import ernie_tiny as reference
from scripts.make_golden.tokenizers import digest
from tests.models.tokenization.folders import ids_of
from tests.paths import ROOT
from tests.patience import PATIENCE

pytest.importorskip("sentencepiece")

FOLDER = ROOT / "tests" / "models" / "golden" / "ernie_tiny_tokenizer"
FILES = ["dict.wordseg.pickle", "spm_cased_simp_sampled.model", "vocab.txt"]
DATA = ROOT.parent / "shared" / "data"
GOLDEN = json.loads((FOLDER / "digests.json").read_text())
TOKENS = (FOLDER / "vocab.txt").read_text(encoding="utf-8").split("\n")
# Letters, words of the dictionary, accents, Greek with its sigma, full-width forms, ligatures and other characters that
# the model writes out, emoji, controls, kinds of space, SentencePiece's own mark, special tokens.
ODD = [*"abA 在中国的人，。！ａ.1éÉe\u0301ΑΟΣσςİıßﬁ①㎞…〈☆👍🏽\u200d\ufe0f\0\u0001\t\n\r\x1c\x85\u00a0\u2028\u3000"]
ODD += [*"\ufeff\ufffd\ue000\u0378▁[\U0002b820", "  ", "the ", "[MASK]", "[SEP]", "[mask]", "MASK]"]
TEXT = st.lists(st.sampled_from(ODD), max_size=20).map("".join) | st.text(max_size=20)


@pytest.fixture(scope="module")
def plain():
    return reference.Plain(FOLDER)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def cased(tmp_path_factory):
    folder = copied(tmp_path_factory.mktemp("cased"))
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false, "tokenizer_class": "ErnieTinyTokenizer"}')
    return Tokenizer.from_pretrained(folder)


def copied(folder, without=None):
    for name in FILES:
        if name != without:
            shutil.copy(FOLDER / name, folder)
    return folder


def tokens(found):
    return [TOKENS[i] for i in found.ids]


def ids(tokenizer, texts):
    return ids_of(tokenizer(texts, max_length=10**7))


def test_a_text_and_a_pair(tokenizer):
    (found,) = tokenizer(["The 中国"])
    assert tokens(found) == ["[CLS]", "▁th", "e", "▁中国", "[SEP]"]
    assert found.types.tolist() == [0] * 5
    (found,) = tokenizer(["a"], ["在 a"])
    assert tokens(found) == ["[CLS]", "[UNK]", "[SEP]", "▁在", "[UNK]", "[SEP]"]
    assert found.types.tolist() == [0, 0, 0, 1, 1, 1]
    special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
    assert special == (0, 1, 2, 3, 4)
    assert tokenizer.vocab_size == len(TOKENS) - 1
    assert tokenizer([]) == []
    assert [tokens(one) for one in tokenizer(["", " ", "\u0001"])] == [["[CLS]", "[SEP]"]] * 3


def test_special_tokens_stay_whole_and_take_the_space_beside_them(tokenizer):
    (found,) = tokenizer(["的 [MASK]\u3000在[UNK]"])
    assert tokens(found)[2:] == ["[MASK]", "▁在", "[UNK]", "[SEP]"]
    assert "[MASK]" not in tokens(tokenizer(["x[mask]"])[0])
    assert tokens(tokenizer([["[MASK]", "在"]], pre_split=True)[0]) == ["[CLS]", "[MASK]", "▁在", "[SEP]"]


@given(text=TEXT)
def test_odd_texts(tokenizer, cased, plain, text):
    assert ids(tokenizer, [text]) == [plain.ids(text)]
    assert ids(cased, [text]) == [plain.ids(text, lower=False)]


def test_every_character_of_the_first_blocks_in_a_word_and_by_itself(tokenizer, plain):
    texts = [f"a{chr(p)}b {chr(p)}" for p in (*range(0x3400), *range(0xF900, 0x10000), *range(0x1F000, 0x1FC00, 7))]
    assert ids(tokenizer, texts) == [plain.ids(text) for text in texts]


@given(texts=st.lists(st.lists(st.sampled_from(ODD), max_size=8).map("".join), max_size=5))
def test_given_words_go_through_on_their_own(tokenizer, texts):
    (found,) = tokenizer([texts], max_length=10**7, pre_split=True, offsets=True)
    alone = tokenizer(texts, max_length=10**7, offsets=True)
    assert found.ids[1:-1].tolist() == [i for one in alone for i in one.ids[1:-1]]
    assert found.offsets[1:-1].tolist() == [place for one in alone for place in one.offsets[1:-1].tolist()]
    assert found.words[1:-1].tolist() == [number for number, one in enumerate(alone) for _ in one.ids[1:-1]]
    assert ids_of(tokenizer([texts], max_length=10**7, pre_split=True)) == ids_of([found])


@pytest.mark.parametrize(
    ("text", "slices", "words"),
    [
        ("The 在a", ["Th", "e", "在", "a"], [0, 0, 1, 2]),
        ("中 İ在", ["中", "İ", "İ", "在"], [0, 1, 2, 3]),  # İ becomes two characters, each a word
        ("[MASK] 在 [MASK]在", ["[MASK]", "在", "[MASK]", "在"], [0, 1, 2, 3]),
        ("\t在", ["在"], [1]),
        ("ﬁ在", ["ﬁ", "ﬁ", "在"], [0, 0, 1]),
    ],
)
def test_offsets_are_of_the_text_as_it_was(tokenizer, text, slices, words):
    (found,) = tokenizer([text], offsets=True)
    spans = [(*span, word) for span, word in zip(found.offsets, found.words, strict=True) if span[0] < span[1]]
    assert [text[begin:end] for begin, end, _ in spans] == slices
    assert [word for *_, word in spans] == words


def test_a_mark_alone_has_an_empty_span_where_its_word_begins(tokenizer):
    text = "在 n ☆"
    (found,) = tokenizer([text], ["n"], offsets=True)
    assert tokens(found) == ["[CLS]", "▁在", "▁", "n", "▁", "[UNK]", "[SEP]", "▁", "n", "[SEP]"]
    assert found.offsets.tolist() == [[0, 0], [0, 1], [2, 2], [2, 3], [4, 4], [4, 5], [0, 0], [0, 0], [0, 1], [0, 0]]
    assert found.words.tolist() == [-1, 0, 1, 1, 2, 2, -1, 0, 0, -1]


@given(text=TEXT)
def test_offsets_are_in_order_and_cut_no_space(tokenizer, text):
    (found,) = tokenizer([text], offsets=True)
    assert ids_of([found]) == ids(tokenizer, [text])
    places, words = found.offsets[1:-1].tolist(), found.words[1:-1].tolist()
    begins = [begin for begin, _ in places]
    assert begins == sorted(begins)  # ends need not be: İ becomes two words
    assert words == sorted(words)
    for token, (begin, end) in zip(tokens(found)[1:-1], places, strict=True):
        assert 0 <= begin <= end <= len(text)
        assert text[begin:end] == text[begin:end].strip() or token == "[UNK]"  # whitespace that the model keeps
        assert begin < end or token in ("▁", "[UNK]")
        letter = text[begin:end] if end - begin == 1 and "!" <= text[begin] <= "~" else ""
        if letter and token not in ("▁", "[UNK]"):
            assert token.strip("▁") == letter.lower()


def test_pairs_are_cut_as_those_of_other_tokenizers(tokenizer):
    (found,) = tokenizer(["在在在在"], ["在在在在在"], max_length=10, offsets=True)
    assert found.truncated
    assert found.types.tolist() == [0] * 6 + [1] * 4
    assert found.offsets[1:5].tolist() == [[i, i + 1] for i in range(4)]
    assert found.offsets[6:9].tolist() == [[i, i + 1] for i in range(3)]
    assert found.words.tolist() == [-1, 0, 1, 2, 3, -1, 0, 1, 2, -1]
    with pytest.raises(DataError, match="pair 0 alone is too long for max_length 5"):
        tokenizer(["在"], ["在在在在"], 5, "only_first")


@pytest.mark.parametrize("offsets", [False, True])
def test_a_lone_surrogate_is_refused(tokenizer, offsets):
    with pytest.raises(
        DataError, match="text or pair 1 contains a lone surrogate, which is not a character; decode it"
    ):
        tokenizer(["a", "a \ud800"], offsets=offsets)
    with pytest.raises(
        DataError, match="text or pair 0 contains a lone surrogate, which is not a character; decode it"
    ):
        tokenizer([["a", "\udc00"]], pre_split=True, offsets=offsets)


@pytest.mark.parametrize("unit", ["a", "a ", "中", "在 ", "👍", "e\u0301", "\0", " ", "İ", "[MASK]"])
def test_a_text_of_a_million_characters(tokenizer, unit):
    start = time.perf_counter()
    (found,) = tokenizer([(unit * 10**6)[: 10**6]], max_length=512)
    assert len(found) <= 512
    assert time.perf_counter() - start < PATIENCE  # seconds; hours if it were quadratic


def test_saved_is_loaded_the_same(tokenizer, plain, tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")  # of another tokenizer that was here
    tokenizer.save_pretrained(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*FILES, "tokenizer.json", "tokenizer_config.json"])
    assert (tmp_path / FILES[1]).read_bytes() == (FOLDER / FILES[1]).read_bytes()
    assert (tmp_path / "vocab.txt").read_bytes() == (FOLDER / "vocab.txt").read_bytes()
    assert pickle.loads((tmp_path / FILES[0]).read_bytes()).keys() == plain.words
    texts = ["我们的中国 The [MASK]", ""]
    again = Tokenizer.from_pretrained(tmp_path)
    assert ids_of(again(texts, texts)) == ids_of(tokenizer(texts, texts))
    assert again.settings["tokenizer_class"] == "ErnieTinyTokenizer"


def test_a_vocabulary_with_ids_in_another_order(tokenizer, tmp_path):
    copied(tmp_path, without="vocab.txt")
    rows = [f"{token}\t{index}" for index, token in enumerate(TOKENS[:-1])]
    (tmp_path / "vocab.txt").write_text("\n".join(rows[::-1]) + "\n", encoding="utf-8")
    again = Tokenizer.from_pretrained(tmp_path)
    assert ids_of(again(["我们的中国 The"])) == ids_of(tokenizer(["我们的中国 The"]))
    again.save_pretrained(tmp_path)
    assert (tmp_path / "vocab.txt").read_bytes() == (FOLDER / "vocab.txt").read_bytes()


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(tmp_path, name):
    copied(tmp_path, without=name)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "ErnieTinyTokenizer"}')
    with pytest.raises(WeightsError, match=f"ERNIE tiny's tokenizer needs .*; {name} is missing"):
        Tokenizer.from_pretrained(tmp_path)


def test_damaged_files_are_named(tmp_path):
    copied(tmp_path)
    for content in (b"<html>", b""):
        (tmp_path / FILES[1]).write_bytes(content)
        with pytest.raises(WeightsError, match=r"sampled\.model: damaged, or not a SentencePiece model"):
            Tokenizer.from_pretrained(tmp_path)
    (tmp_path / FILES[0]).write_bytes(pickle.dumps(np.zeros(3)))
    with pytest.raises(WeightsError, match=r"dict\.wordseg\.pickle: the pickle needs 'numpy.*nothing was executed"):
        Tokenizer.from_pretrained(tmp_path)


def test_without_sentencepiece_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(WeightsError, match=r"needs sentencepiece: pip install 'onion-paddle\[sentencepiece\]'$"):
        Tokenizer.from_pretrained(copied(tmp_path))


def test_a_style_still_takes_the_vocabulary_alone(tmp_path):
    copied(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "ErnieTinyTokenizer"}')
    Tokenizer.from_pretrained(tmp_path, style="sentencepiece-characters").save_pretrained(tmp_path / "saved")
    assert tokens(Tokenizer.from_pretrained(tmp_path / "saved")(["在"])[0]) == ["[CLS]", "▁在", "[SEP]"]


@pytest.mark.data
@pytest.mark.parametrize("name", GOLDEN)
def test_real_texts_as_paddlenlp_has_them(tokenizer, name):
    language = reference.LANGUAGES[name]
    if not (DATA / f"text_{language}").is_dir():
        pytest.skip(f"the data folder with text_{language} is not beside the repository")
    lines = reference.read_lines(DATA, language)
    found = ids(tokenizer, lines)
    assert {"lines": len(lines), "ids": sum(map(len, found)), "sha256": digest(found)} == GOLDEN[name]
