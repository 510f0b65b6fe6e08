"""Flags of tokens: by hand, and what holds for any text and any units."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus import flags as bits
from onion.tasks.pretraining.corpus.segmentation.sentences import sentences
from onion.tasks.pretraining.corpus.segmentation.spans import Spans, units_of
from onion.tasks.pretraining.corpus.token_flags import continued, token_flags

TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *"南京市长江大桥好。！",
    ".",
    "hello",
    "new",
    "york",
    "##s",
    "##er",
]
WORDS = [*"南京市长江大桥好。！鑫", ". ", "Hello ", "news ", "News\n", "Yorkers", " ", "É", "\u3000"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    return Tokenizer.from_pretrained(folder)


def flagged(tokenizer, texts, spans):
    encodings = tokenizer(texts, max_length=1 << 20, offsets=True)
    found = token_flags(texts, encodings, spans)
    assert [(each.dtype, len(each)) for each in found] == [(np.uint8, len(encoding)) for encoding in encodings]
    assert all(each[0] == each[-1] == 0 for each in found), "special tokens have no flags"
    return [tokenizer.tokens(each.ids[1:-1]) for each in encodings], [each[1:-1] for each in found]


def spans_in(text, words=(), phrases=(), entities=()):
    def ranges(units):
        return units_of((text.index(unit), text.index(unit) + len(unit)) for unit in units)

    return Spans(ranges(words), ranges(phrases), ranges(entities))


def test_by_hand(tokenizer):
    texts = ["南京市长江大桥好。Hello News", "", "New York. 好"]
    spans = [
        spans_in(texts[0], ["南京", "市", "长江", "大桥", "好"], ["市长江大"], ["京", "好"]),
        Spans(),
        spans_in(texts[2], ["New", "York", "."], [], ["New York"]),
    ]
    tokens, found = flagged(tokenizer, texts, spans)
    assert tokens[0] == [*"南京市长江大桥好。", "hello", "new", "##s"]

    def having(row, bit):
        return "".join("01"[bool(flag & bit)] for flag in found[row])

    #                                     南京市长江大桥好。 hello new ##s
    assert having(0, bits.IN_WORD) == "010010100001"
    assert having(0, bits.PHRASE) == "001111100000"  # 市长江大 cuts 大桥, and so has it
    assert having(0, bits.IN_PHRASE) == "000111100000"
    assert having(0, bits.ENTITY) == "110000010000"
    assert having(0, bits.IN_ENTITY) == "010000000000"
    assert having(0, bits.IN_SENTENCE) == "011111111011"
    assert having(0, bits.IN_PARAGRAPH) == "011111111111"
    assert having(0, bits.CAPITAL) == "000000000110"
    assert having(1, 255) == ""
    assert tokens[2] == ["new", "york", ".", "好"]
    assert [having(2, bit) for bit in (bits.IN_WORD, bits.IN_ENTITY, bits.ENTITY)] == ["0000", "0100", "1100"]
    assert [having(2, bit) for bit in (bits.IN_SENTENCE, bits.IN_PARAGRAPH, bits.CAPITAL)] == ["0110", "0111", "1100"]


@st.composite
def some_units(draw, text):
    """Ascending ranges of a text without overlaps."""
    places = st.integers(0, len(text))
    edges = sorted(draw(st.sets(places, max_size=12)))
    pairs = [pair for pair in pairwise(edges) if draw(st.booleans())]
    return units_of(pairs)


@st.composite
def some_texts(draw):
    texts = draw(st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map("".join), min_size=1, max_size=4))
    return texts, [Spans(*(draw(some_units(text)) for _ in range(3))) for text in texts]


@given(case=some_texts())
def test_what_holds_for_any_units(tokenizer, case):
    texts, spans = case
    tokens, found = flagged(tokenizer, texts, spans)
    for text, mine, pieces, flags in zip(texts, spans, tokens, found, strict=True):
        (alone,) = flagged(tokenizer, [text], [mine])[1]
        assert alone.tolist() == flags.tolist(), "a batch is as good as one"
        inside = {bit: (flags & bit) > 0 for bit in (1, 2, 4, 8, 16, 32, 64, 128)}
        begins_with = np.array([piece.startswith("##") for piece in pieces], bool)
        assert inside[bits.IN_WORD][begins_with].all(), "pieces of a word stay together"
        assert inside[bits.IN_PARAGRAPH].tolist() == [place > 0 for place in range(len(flags))]
        for unit in (bits.IN_WORD, bits.IN_PHRASE, bits.IN_ENTITY):
            assert inside[bits.IN_SENTENCE][inside[unit]].all(), "no unit crosses a sentence"
        for whole, smaller in (
            ((bits.PHRASE, bits.IN_PHRASE), bits.IN_WORD),
            ((bits.ENTITY, bits.IN_ENTITY), bits.IN_WORD),
            ((bits.PHRASE, bits.IN_PHRASE), bits.IN_ENTITY),
        ):
            for place in np.flatnonzero(inside[smaller]):
                part = inside[whole[0]][place]
                assert part == inside[whole[0]][place - 1] == inside[whole[1]][place], "no unit cuts another"
        assert not inside[bits.CAPITAL][inside[bits.IN_WORD]].any()


@given(case=some_texts())
def test_units_that_cut_nothing_are_kept(tokenizer, case):
    """Without words of a segmenter: the tokens of a unit go on with it unless a sentence begins there."""
    texts, spans = case
    only = [Spans(entities=each.entities) for each in spans]
    encodings = tokenizer(texts, max_length=1 << 20, offsets=True)
    for text, mine, encoding, flags in zip(texts, only, encodings, token_flags(texts, encodings, only), strict=True):
        starts = sentences(text)[:, 0]
        places = [place for place in range(len(encoding)) if encoding.words[place] >= 0]
        for before, place in pairwise(places):
            (_, last), (first, _) = encoding.offsets[before], encoding.offsets[place]
            if any(begin < last and first < end for begin, end in mine.entities.tolist()):
                assert flags[place] & bits.ENTITY
                new = np.searchsorted(starts, first, "right") != np.searchsorted(starts, last - 1, "right")
                assert bool(flags[place] & bits.IN_ENTITY) == (not new)


def test_of_no_paragraphs_and_no_tokens(tokenizer):
    assert token_flags([], [], []) == []
    assert [each.tolist() for each in flagged(tokenizer, ["", " "], [Spans(), Spans()])[1]] == [[], []]
    assert continued(np.array([0]), np.array([1]), units_of([(0, 2)])).tolist() == [False]
