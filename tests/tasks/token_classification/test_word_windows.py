import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.tasks.token_classification.word_windows import STAND_IN, word_windows
from tests.tasks.helpers import IDS

ODD = ["", " ", "\x00", "\x07", "\u200b", "\ufffd", "\u3000", "\ufeff", "[SEP]", "[MASK]", "□"]
SCRIPTS = ["a", "film", "中", "中文", "über", "é", "́", "👩\u200d🚀", "ＡＢ", "ﬁ", "İ", "Σ", "a.b!", "아", "ß"]
ANY = st.one_of(st.sampled_from(ODD + SCRIPTS), st.text(st.characters(exclude_categories=["Cs"]), max_size=4))


def pieces_of(tokenizer, word):
    """The ids of a word that stands alone; those of a stand-in where there are none."""
    for each in (word, STAND_IN):
        ids = tokenizer([[each]], max_length=512, pre_split=True)[0].ids[1:-1].tolist()
        if ids:
            return ids
    raise AssertionError(word)


def test_one_window_by_hand(tokenizer):
    ((window,),) = word_windows(tokenizer, [["a", "film!", "\ufffd", "plot"]], 16, 8)
    wanted = ["[CLS]", "a", "film", "!", "[UNK]", "plot", "[SEP]"]
    assert window.encoding.ids.tolist() == [IDS[token] for token in wanted]
    assert (window.firsts.tolist(), window.word, window.own) == ([1, 2, 4, 5], 0, (0, 4))


def test_windows_share_words_out_in_the_middle_of_what_they_share(tokenizer):
    # 4 tokens a window, a new one every 2; windows over the words 0-3, 2-5, 4-7, 6-8.
    ((*windows,),) = word_windows(tokenizer, [["a"] * 9], 6, 2)
    assert [window.word for window in windows] == [0, 2, 4, 6]
    assert [len(window.firsts) for window in windows] == [4, 4, 4, 3]
    assert [window.own for window in windows] == [(0, 3), (1, 3), (1, 3), (1, 3)]


def test_windows_side_by_side(tokenizer):
    ((*windows,),) = word_windows(tokenizer, [["a", "a", "a.", "a", "a"]], 5, 100)
    wanted = [[IDS[token] for token in text] for text in ("aaa", ".aa")]
    assert [window.encoding.ids[1:-1].tolist() for window in windows] == wanted
    assert [window.firsts.tolist() for window in windows] == [[1, 2, 3], [2, 3]]  # the point is no word's first token
    assert [(window.word, window.own) for window in windows] == [(0, (0, 3)), (3, (0, 2))]


def test_a_window_in_which_no_word_begins_is_left_out(tokenizer):
    ((*windows,),) = word_windows(tokenizer, [["a", "." * 20, "film"]], 6, 4)
    assert [(window.word, len(window.firsts)) for window in windows] == [(0, 2), (2, 1)]


def test_a_text_without_words(tokenizer):
    ((window,),) = word_windows(tokenizer, [[]], 6, 2)
    assert window.encoding.ids.tolist() == [IDS["[CLS]"], IDS["[UNK]"], IDS["[SEP]"]]
    assert (window.firsts.tolist(), window.own) == ([1], (0, 1))


@settings(max_examples=200)
@given(st.lists(st.lists(ANY, max_size=12), min_size=1, max_size=3), st.integers(3, 12), st.integers(1, 14))
def test_nothing_shifts(tokenizer, texts, max_length, stride):
    """Whatever the words are: each belongs to one window, in order, and its own tokens begin there."""
    for words, windows in zip(texts, word_windows(tokenizer, texts, max_length, stride), strict=True):
        words = words or [STAND_IN]
        pieces = [pieces_of(tokenizer, word) for word in words]
        own = []
        for window in windows:
            assert len(window.encoding) <= max_length
            numbers = window.word + np.arange(len(window.firsts))
            for number, first in zip(numbers, window.firsts, strict=True):
                held = window.encoding.ids[first : first + len(pieces[number])]
                cut = len(held) - 1 if first + len(pieces[number]) >= len(window.encoding) else len(held)
                assert held[:cut].tolist() == pieces[number][:cut]
                assert cut > 0
            assert 0 <= window.own[0] < window.own[1] <= len(numbers)
            own += numbers[slice(*window.own)].tolist()
        assert own == list(range(len(words)))


@given(st.integers(1, 40), st.integers(4, 12), st.integers(1, 12))
def test_every_word_belongs_where_the_nearer_cut_is_farthest(tokenizer, count, max_length, stride):
    (windows,) = word_windows(tokenizer, [["a"] * count], max_length, stride)

    def reach(window, number):
        """How many words stand between a word and the nearer cut of the window; an end of the text is no cut."""
        first, last = window.word, window.word + len(window.firsts) - 1
        left = count if first == 0 else number - first
        right = count if last == count - 1 else last - number
        return min(left, right)

    for window in windows:
        for number in range(window.word + window.own[0], window.word + window.own[1]):
            others = [each for each in windows if each.word <= number < each.word + len(each.firsts)]
            assert reach(window, number) >= max(reach(each, number) for each in others)
