import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.tasks.metrics.cmrc import PUNCTUATION, alike, pieces
from tests.tasks.helpers import DATA, needs_data


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("光荣《三国》KOEI公司。", ["光", "荣", "三", "国", "koei", "公", "司"]),
        ("1,000元（3.5%）", ["1,000", "元", "3.5", "%"]),
        ("U.S. history.", ["u.s.", "history", "."]),
        ("D.C.的", ["d.c", ".", "的"]),  # the full stop that ends the words stands alone
        ("Lloyd's银行", ["lloyd", "'s", "银", "行"]),
        ('"Music Week"(前75名)', ['"', "music", "week", '"', "(", "前", "75", "名", ")"]),
        ("T-Rex, 9–18", ["trex", ",", "9", "–", "18"]),
        ("等等...", ["等", "等", "..."]),
        ("…", ["…"]),
        (" -：", []),
    ],
)
def test_pieces_as_nltk_gives_them(text, expected):
    assert pieces(text) == expected


@pytest.mark.parametrize(
    ("answer", "truth", "same", "f1"),
    [
        ("光荣和ω-force", "光荣和ω-force。", 1, 1),
        ("光荣", "光荣和ω-force", 0, 2 * 1 * (2 / 4) / (1 + 2 / 4)),  # 光 荣 of 光 荣 和 ωforce
        ("任天堂", "光荣", 0, 0),
        ("一二三四", "一二五三四", 0, 4 / 9),  # a run of 2 of 4 and of 5
        ("KOEI 公司", "koei公司", 0, 1),  # the space counts in the one, not in the other
        ("", "", 1, 1),
        ("", "光", 0, 0),
        ("光", "，", 0, 0),
        ("。", "，", 1, 1),
    ],
)
def test_by_hand(answer, truth, same, f1):
    assert alike(answer, truth) == (same, pytest.approx(f1))


def run_by_trying(one, other):
    """The longest list of pieces that is in both, by trying all."""
    parts = [one[i:j] for i in range(len(one)) for j in range(i + 1, len(one) + 1)]
    return max((len(part) for part in parts for k in range(len(other)) if other[k : k + len(part)] == part), default=0)


@settings(max_examples=300)
@given(st.text("一二三ab ，.", max_size=8), st.text("一二三ab ，.", max_size=8))
def test_the_f1_is_that_of_the_longest_run(answer, truth):
    said, true = pieces(answer), pieces(truth)
    run = run_by_trying(said, true)
    if run:
        precision, recall = run / len(said), run / len(true)
        assert alike(answer, truth)[1] == pytest.approx(2 * precision * recall / (precision + recall))
    elif said and true:
        assert alike(answer, truth)[1] == 0


@given(st.text("一二三ab ，.'\"1(", max_size=20))
def test_nothing_but_space_and_punctuation_is_lost(text):
    kept = [each for each in text if each not in PUNCTUATION and not each.isspace()]
    assert "".join(pieces(text)) == "".join(kept)


@needs_data
def test_real_answers_of_plain_chinese_are_split_into_their_characters():
    """Where there is nothing but Chinese characters and punctuation, the official script leaves no choice."""
    split = 0
    for article in json.loads((DATA / "cmrc2018" / "trial.json").read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                for answer in question["answers"]:
                    kept = [each for each in answer["text"].strip() if each not in PUNCTUATION]
                    if all("\u4e00" <= each <= "\u9fa5" for each in kept):
                        assert pieces(answer["text"]) == kept
                        split += 1
    assert split > 500
