import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError, WeightsError
from onion.models.tokenization.truncation import kept_lengths
from onion.models.tokenizer import Tokenizer

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "film", "##s", "uber", "中", ".", "2", "▁film", "s"]
VOCAB += ["▁中", "filma", "▁a", "[", "]"]
IDS = {token: index for index, token in enumerate(VOCAB)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocab")
    (folder / "vocab.txt").write_text("\n".join(VOCAB), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def tokenizer(folder):
    return Tokenizer.from_pretrained(folder)


def tokens(found):
    return [VOCAB[i] for i in found.ids]


def test_offsets_and_words_only_when_asked_for(tokenizer):
    (plain,) = tokenizer(["a films"])
    assert plain.offsets is None
    assert plain.words is None
    with pytest.raises(ValueError, match="tokenize with offsets=True"):
        plain.alignment  # noqa: B018 - asking is the test
    (found,) = tokenizer(["a films"], offsets=True)
    assert found.alignment == (found.offsets, found.words)
    assert found.ids.tolist() == plain.ids.tolist()
    assert found.offsets.dtype == found.words.dtype == np.int64
    assert found.mask.tolist() == [1] * 5


def test_offsets_count_code_points_of_each_text(tokenizer):
    text, pair = "\u0000👍 Films中 [MASK]", "Über u\u0308ber."
    (found,) = tokenizer([text], [pair], offsets=True)
    assert tokens(found) == ["[CLS]", "[UNK]", "film", "##s", "中", "[MASK]", "[SEP]", "uber", "uber", ".", "[SEP]"]
    slices = [(text, pair)[kind][begin:end] for kind, (begin, end) in zip(found.types, found.offsets, strict=True)]
    assert slices == ["", "👍", "Film", "s", "中", "[MASK]", "", "Über", "u\u0308ber", ".", ""]
    assert found.words.tolist() == [-1, 0, 1, 1, 2, 3, -1, 0, 1, 2, -1]
    assert found.offsets[[0, 6, 10]].tolist() == [[0, 0]] * 3


def test_nothing_has_empty_offsets(tokenizer):
    (found,) = tokenizer([""], offsets=True)
    assert found.offsets.tolist() == [[0, 0], [0, 0]]
    assert found.words.tolist() == [-1, -1]


def test_words_that_were_split_before(tokenizer):
    words = ["Films.", "\u0000", "中a"]
    (found,) = tokenizer([words], [("b",)], offsets=True, pre_split=True)
    assert tokens(found) == ["[CLS]", "film", "##s", ".", "中", "a", "[SEP]", "b", "[SEP]"]
    assert found.words.tolist() == [-1, 0, 0, 0, 2, 2, -1, 0, -1]
    of_first = [i for i in range(len(found)) if found.types[i] == 0 and found.words[i] >= 0]
    assert [words[found.words[i]][slice(*found.offsets[i])] for i in of_first] == ["Film", "s", ".", "中", "a"]
    assert tokens(tokenizer([[]], pre_split=True)[0]) == ["[CLS]", "[SEP]"]


def test_what_is_cut_of_a_pair(tokenizer):
    first, second = ["a a a a"], ["b b b b"]
    counts = {}
    for truncation in ("only_first", "only_second", "longest_first"):
        (found,) = tokenizer(first, second, 9, truncation)
        assert found.truncated
        counts[truncation] = (tokens(found).count("a"), tokens(found).count("b"))
    assert counts == {"only_first": (2, 4), "only_second": (4, 2), "longest_first": (3, 3)}
    assert len(tokenizer(["a a a a"], max_length=5, truncation="only_first")[0]) == 5


@given(first=st.integers(0, 12), second=st.integers(0, 12), max_length=st.integers(4, 20))
def test_longest_first_takes_token_after_token_off_the_longer_text(tokenizer, first, second, max_length):
    a, b = first, second
    while a + b > max_length - 3:
        a, b = (a - 1, b) if a > b else (a, b - 1)
    if first + second > max_length - 3:
        assert kept_lengths(first, second, max_length - 3) == (a, b)
    for split in (False, True):
        texts = [["a"] * first], [["b"] * second]
        texts = texts if split else tuple([" ".join(one[0])] for one in texts)
        (found,) = tokenizer(*texts, max_length, pre_split=split, offsets=True)
        assert tokens(found) == ["[CLS]", *["a"] * a, "[SEP]", *["b"] * b, "[SEP]"]
        assert found.types.tolist() == [0] * (a + 2) + [1] * (b + 1)
        assert found.truncated == (first + second > a + b)
        assert len(found.offsets) == len(found.words) == len(found)


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        ((["a"], ["b"], 9, "longest"), {}, "no truncation 'longest'; there are longest_first, only_first, only_second"),
        ((["a"], None, 9, "only_second"), {}, "needs pairs"),
        ((["a", "a"], ["b", "b b b b b"], 6, "only_first"), {}, "pair 1 alone is too long for max_length 6"),
        ((["a", "a a a a a"], ["b", "b"], 6, "only_second"), {}, "text 1 alone is too long for max_length 6"),
        ((["a"],), {"pre_split": True}, "text 0 is a str, not a list of words"),
        (([["a"], ["a", 1]],), {"pre_split": True}, "text 1 holds a int, not words only"),
        (([["a"]],), {}, "text 0 is a list, not a string"),
    ],
)
def test_bad_calls_are_refused(tokenizer, arguments, more, message):
    with pytest.raises(DataError, match=message):
        tokenizer(*arguments, **more)
    assert tokens(tokenizer(["a"])[0]) == ["[CLS]", "a", "[SEP]"]


@pytest.mark.parametrize(
    ("style", "text", "expected"),
    [
        ("wordpiece", "Filmsfilm 2a中.", ["[UNK]", "[UNK]", "中", "."]),
        ("symbols", "Film°s 2a×中.€", ["film", "[UNK]", "s", "[UNK]", "[UNK]", "中", ".", "[UNK]"]),
        ("words", "Film  films 中.a\x1cfilm\u3000filma", ["film", "[UNK]", "[UNK]", "film", "filma"]),
        ("words", "2[MASK]a ##s Uber", ["2", "[MASK]", "a", "##s", "uber"]),
        ("spaces", "FILMS 中 中a .\x1ca\u3000é", ["film", "##s", "中", "[UNK]", ".", "a", "[UNK]"]),
        ("spaces", "中.a", ["[UNK]"]),  # no spaces, one word (ERNIE issue 437)
        ("characters", "Films中.a-\x1cé", ["film", "##s", "中", ".", "a", "[UNK]", "[UNK]"]),
        ("sentencepiece-characters", "Films中.Filmss a", ["▁film", "s", "▁中", "[UNK]", "▁film", "s", "s", "▁a"]),
    ],
)
def test_styles_of_splitting(folder, tmp_path, style, text, expected):
    tokenizer = Tokenizer.from_pretrained(folder, style=style)
    assert tokens(tokenizer([text])[0]) == ["[CLS]", *expected, "[SEP]"]
    tokenizer.save_pretrained(tmp_path)
    assert tokens(Tokenizer.from_pretrained(tmp_path)([text])[0]) == ["[CLS]", *expected, "[SEP]"]


def test_half_a_surrogate_pair_is_dropped_or_unknown_and_never_an_error(folder):
    """Python's strings may hold one (``json.loads`` makes them), the library's may not."""
    for style, expected in (("wordpiece", ["a", "b"]), ("spaces", ["a", "[UNK]", "b"]), ("words", ["a", "[UNK]", "b"])):
        tokenizer = Tokenizer.from_pretrained(folder, style=style)
        assert tokens(tokenizer(["a \ud800 b"])[0]) == ["[CLS]", *expected, "[SEP]"]
        assert tokens(tokenizer([["a", "\ud800", "b"]], pre_split=True)[0]) == ["[CLS]", *expected, "[SEP]"]


def test_words_as_a_whole_keep_their_capitals_and_are_of_any_length(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*VOCAB, "x" * 200, "ΟΣ"]), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    (found,) = Tokenizer.from_pretrained(tmp_path, style="words")([f"{'x' * 200} ΟΣ\x1cA a"], offsets=True)
    assert found.ids.tolist() == [2, len(VOCAB), len(VOCAB) + 1, 1, IDS["a"], 3]
    assert found.offsets[2:5].tolist() == [[201, 203], [204, 205], [206, 207]]


def test_a_style_that_was_chosen_is_kept(folder, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCAB), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "ErnieTokenizer"}')
    assert tokens(Tokenizer.from_pretrained(tmp_path)(["a°b"])[0]) == ["[CLS]", "a", "[UNK]", "b", "[SEP]"]
    chosen = Tokenizer.from_pretrained(tmp_path, style="wordpiece")
    assert tokens(chosen(["a°b"])[0]) == ["[CLS]", "[UNK]", "[SEP]"]
    chosen.save_pretrained(tmp_path / "saved")
    assert tokens(Tokenizer.from_pretrained(tmp_path / "saved")(["a°b"])[0]) == ["[CLS]", "[UNK]", "[SEP]"]


@pytest.mark.parametrize("style", ["spaces", "characters"])
def test_cased_styles_keep_capitals_and_know_the_same_spaces(tmp_path, style):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCAB), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    (found,) = Tokenizer.from_pretrained(tmp_path, style=style)(["films\x1cFilms\x1fa \ud800"])
    assert tokens(found) == ["[CLS]", "film", "##s", "[UNK]", "a", "[UNK]", "[SEP]"]


def test_every_style_gives_offsets(folder):
    text = "Films 中.Films\x1ca"
    for style in ("spaces", "characters", "sentencepiece-characters"):
        (found,) = Tokenizer.from_pretrained(folder, style=style)([text], offsets=True)
        first, second = (text[begin:end] for begin, end in found.offsets[1:3])
        assert (first, second) == ("Film", "s")
        assert text[slice(*found.offsets[-2])] == "a"


def test_words_of_more_than_100_characters_are_unknown_in_every_style(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*VOCAB, "##a"]), encoding="utf-8")
    for style, piece in (("wordpiece", "##a"), ("spaces", "##a"), ("characters", "##a")):
        tokenizer = Tokenizer.from_pretrained(tmp_path, style=style)
        assert len(tokenizer(["a" * 100])[0]) == 102, piece
        assert tokenizer(["a" * 101])[0].ids.tolist() == [2, 1, 3]
    marked = Tokenizer.from_pretrained(tmp_path, style="sentencepiece-characters")
    assert len(marked(["a" * 100])[0]) == 102
    assert marked(["a" * 101])[0].ids.tolist() == [2, 1, 3]


def test_a_style_is_for_vocab_txt(folder, tmp_path, tokenizer):
    with pytest.raises(WeightsError, match="no tokenizer style 'chars'; there are wordpiece, symbols, spaces"):
        Tokenizer.from_pretrained(folder, style="chars")
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(WeightsError, match=r"style 'spaces' needs vocab\.txt"):
        Tokenizer.from_pretrained(tmp_path, style="spaces")


def test_ids_as_the_vocabulary_writes_them(tokenizer):
    assert tokenizer.tokens(np.array([2, 8, 10, 4])) == ["[CLS]", "##s", "中", "[MASK]"]
    assert tokenizer.tokens([len(VOCAB), -1, 2**70]) == [None] * 3


def test_special_tokens_that_a_text_spells_are_special(tokenizer):
    """As with the references: the text says where it ends."""
    assert tokens(tokenizer(["a [SEP] [MASK]b"])[0]) == ["[CLS]", "a", "[SEP]", "[MASK]", "b", "[SEP]"]
    assert tokens(tokenizer([["a", "[SEP]"]], pre_split=True)[0]) == ["[CLS]", "a", "[SEP]", "[SEP]"]
