"""Sentences of Chinese and English text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.tasks.pretraining.corpus.segmentation.sentences import sentences

CASES = [
    "他走了。|我来了！|你呢？",
    "他说：“走！”|我就走了。",
    "“真的吗？”，他问。|真的吗?|我不信!",
    "他笑了……|然后呢？！|真的。。。|好",
    "《你好，李焕英！》是一部电影。|很好看！",
    "（他走了。）|「我来了。」|好",
    "3．5％，1.北京 2.上海",
    "Mr. Smith met J. R. R. Tolkien. |He left at 5 p.m. |They had tea etc. |The end.",
    "The U.S. Army paid $3.14, see Fig. 3 or p. 7, e.g. This.",
    "Is this p. |Yes, it is no. |No. 5 is late.",
    '"Hello!" she said. |"Why?" |\'What?\' |(No.) |Yes... no... |Well… |1999 ended it. |2000 did not.',
    "Use a.b.c or e-mail. iPhone users do not.",
    "He said no. |他走了。|She came. |她来了",
    "first line\n|second line. |Third\n\n|fourth",
    "  around  ",
    "Ελλάδα. |Αθήνα. αθήνα",
    "。”|开头",
]


@pytest.mark.parametrize("case", CASES)
def test_by_hand(case):
    text = case.replace("|", "")
    found = [text[begin:end] for begin, end in sentences(text)]
    assert found == [each.strip() for each in case.split("|")]


def test_of_nothing():
    assert sentences("").shape == sentences(" \n\u3000").shape == (0, 2)


@pytest.mark.parametrize("run", ["。", ".", "…", "！!", "”", "《", " ", "。”", "a. "])
def test_long_runs_take_linear_time(run):
    """A quadratic search would take minutes."""
    for after in ("，", "a", " A"):
        text = run * 100_000 + after
        assert sentences(text)[-1, 1] == len(text)


@given(st.text(alphabet="aB1 .!?…。！？”\"'」》《，中\n", max_size=40))
def test_sentences_hold_everything_but_white_space(text):
    found = sentences(text).tolist()
    place = 0
    for begin, end in found:
        assert not text[place:begin].strip()
        assert text[begin:end].strip() == text[begin:end] != ""
        place = end
    assert not text[place:].strip()
