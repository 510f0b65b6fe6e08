from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.models.tokenizer import Encoding
from onion.tasks.question_answering.positions import NOWHERE, UNKNOWN
from onion.tasks.question_answering.questions import Answer, Question
from onion.tasks.question_answering.windows import Windows, examples_of, note_cut, targets

CONTEXT = "the film was warm and it was a great plot ."
WORDS = CONTEXT.split()


@pytest.fixture(scope="module")
def windows(tokenizer):
    """The windows over a context: 3 special tokens, the question's, and 4 of the context, each 2 after the last."""

    def make(context=CONTEXT, question="film", room=4, stride=2):
        length = 3 + len(question.split()) + room
        encodings = tokenizer.windows([question], [context], max_length=length, stride=stride, max_first=5)[0]
        return Windows.of(encodings, stride)

    return make


def answer(text, context=CONTEXT):
    return Answer(text, context.index(text))


def test_windows_over_a_context(windows):
    found = windows()
    assert found.begin == 3  # [CLS] film [SEP]
    assert found.firsts.tolist() == [0, 2, 4, 6, 8]
    assert found.counts.tolist() == [4, 4, 4, 4, 3]
    assert [CONTEXT[begin:end] for begin, end in found.offsets] == WORDS


def test_one_window_and_an_empty_context(windows):
    one, empty = windows(room=50), windows(context="")
    assert (one.firsts.tolist(), one.counts.tolist(), one.cores().tolist()) == ([0], [11], [[0, 11]])
    assert (empty.firsts.tolist(), empty.counts.tolist(), empty.cores().tolist()) == ([0], [0], [[0, 0]])


def test_windows_side_by_side(windows):
    found = windows(stride=99)
    assert (found.firsts.tolist(), found.counts.tolist()) == ([0, 4, 8], [4, 4, 3])
    assert found.cores().tolist() == [[0, 4], [0, 4], [0, 3]]


def test_an_empty_question(windows):
    assert windows(question="").begin == 2


def test_the_context_of_roberta_is_found_without_types():
    special, numbers = [-1], np.arange(2)
    words = np.concatenate([special, numbers, special, special, numbers, special])  # <s> a b </s></s> c d </s>
    numbered = np.arange(16).reshape(8, 2)
    found = Windows.of([Encoding(words, np.zeros(8, np.int64), False, numbered, words)], 5)
    assert (found.begin, found.offsets.tolist()) == (5, [[10, 11], [12, 13]])


def test_where_an_answer_stands_in_each_window(windows):
    # tokens 3 and 4; windows hold 0-3, 2-5, 4-7, ...
    assert windows().places(answer("warm and")).tolist() == [[0, 0], [4, 5], [0, 0], [0, 0], [0, 0]]
    assert windows().places(answer("the")).tolist() == [[3, 3], *[[NOWHERE] * 2] * 4]
    assert windows().places(answer("warm and it was a")) is None  # 5 tokens: no window holds them


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [("warm", 3, 3), ("ar", 3, 3), (" warm ", 3, 3), ("ilm wa", 1, 2), (CONTEXT, 0, 10)],
)
def test_tokens_that_hold_some_of_an_answer(windows, text, first, last):
    assert (windows(room=50).places(answer(text)) - 3).tolist() == [[first, last]]


def test_an_answer_that_no_token_holds(windows):
    assert windows(room=50).places(answer(" ")) is None
    assert windows(context="a  ", room=50).places(Answer(" ", 2)) is None


def cores_by_hand(firsts, counts, total):
    """The window of each token as ``run_squad.py`` chooses it: one by one, the best score so far."""
    owners = []
    for token in range(total):
        best, owner = None, None
        for number, (first, count) in enumerate(zip(firsts, counts, strict=True)):
            if not first <= token < first + count:
                continue
            score = 100 * min(token - first, first + count - 1 - token) + count  # times 100: nothing is rounded
            if best is None or score > best:
                best, owner = score, number
        owners.append(owner)
    return owners


@settings(max_examples=150)
@given(st.integers(1, 700), st.integers(1, 400), st.integers(1, 450))
def test_every_token_is_in_the_core_of_the_window_that_bert_chooses(total, room, stride):
    step = min(room, stride)
    firsts = [0]
    while firsts[-1] + room < total:
        firsts.append(firsts[-1] + step)
    counts = [min(room, total - first) for first in firsts]
    windows = Windows([], 0, np.array(firsts), np.array(counts), np.zeros((total, 2), np.int64))
    owners = np.full(total, -1)
    for number, (first, (begin, end)) in enumerate(zip(firsts, windows.cores().tolist(), strict=True)):
        assert (owners[first + begin : first + end] == -1).all()
        owners[first + begin : first + end] = number
    assert owners.tolist() == cores_by_hand(firsts, counts, total)


def test_examples(windows):
    found = windows()
    examples = examples_of(found, row=7)
    assert [example["row"] for example in examples] == [7] * 5
    assert [len(example["ids"]) for example in examples] == [8, 8, 8, 8, 7]
    for example, first in zip(examples, (0, 2, 4, 6, 8), strict=True):
        parts = [CONTEXT[begin:end] for begin, end in example["offsets"]]
        assert parts == WORDS[first : first + 4]
        assert example["begin"] == 3
    # The sides of token 2 are 1 in the first window and 0 in the second; of token 3, 0 and 1.
    assert [(example["core_begin"], example["core_end"]) for example in examples[:2]] == [(0, 3), (1, 3)]


def question(*answers):
    return Question("a.json: data[0]", "a", "film", CONTEXT, answers)


def test_the_first_answer_that_stands_somewhere_is_learned(windows):
    notes = Counter()
    wrong, long, right = Answer("warm", 5), answer("warm and it was a"), answer("was warm")
    found = targets(question(wrong, long, right, answer("the")), windows(), notes)
    assert found.tolist() == [[5, 6], [3, 4], [0, 0], [0, 0], [0, 0]]
    assert notes == {"answers not found at their answer_start, ignored": 1}


def test_no_answer_is_learned_as_nowhere(windows):
    notes = Counter()
    assert targets(question(), windows(), notes).tolist() == [[NOWHERE] * 2] * 5
    assert not notes


@pytest.mark.parametrize("wrong", [Answer("warm", 5), Answer("cold", -1), answer("warm and it was a"), answer(" ")])
def test_where_no_answer_is_right_nothing_is_learned(windows, wrong):
    notes = Counter()
    assert targets(question(wrong), windows(), notes).tolist() == [[UNKNOWN] * 2] * 5
    assert notes["questions without an answer in any window, ignored"] == 1


@pytest.mark.parametrize(
    ("text", "cut"), [("a film", 0), ("a film was it \n", 0), ("a film was it warm", 0), ("a film was it warm .", 1)]
)
def test_questions_that_are_cut_are_counted(tokenizer, text, cut):
    (encodings,) = tokenizer.windows([text], [CONTEXT], max_length=12, stride=2, max_first=5)
    notes = Counter()
    note_cut(notes, question(), Windows.of(encodings, 2), 5)
    note_cut(notes, Question("", "", text, CONTEXT), Windows.of(encodings, 2), 5)
    assert notes["questions longer than 5 tokens, cut"] == cut


def test_cores_of_a_very_long_context_take_little_memory():
    """A table of all windows and tokens would have 20 GB."""
    firsts = 6 * np.arange(20_000)
    windows = Windows([], 0, firsts, np.full(20_000, 12), np.zeros((firsts[-1] + 12, 2)))
    begins, ends = (windows.cores() + firsts[:, None]).T
    assert (begins[0], ends[-1]) == (0, len(windows.offsets))
    assert (begins[1:] == ends[:-1]).all()
