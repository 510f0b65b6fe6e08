import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.tasks.question_answering.answers import Spans, best_spans, find

CONTEXT = "ab cd ef"
OFFSETS = np.array([[0, 2], [3, 5], [6, 8]])


def spans(logits, most=20, longest=3, core=slice(0, 3), offsets=OFFSETS):
    places, found = best_spans(np.array(logits, np.float32), offsets, core, most, longest)
    return places.tolist(), found.tolist()


def test_the_best_spans_by_hand():
    logits = [[1.0, 0.5], [3.0, 0.0], [0.0, 2.0]]
    # pairs: 0-0 1.5, 0-1 1, 0-2 3, 1-1 3, 1-2 5, 2-2 2; equal ones in the order of the context
    places, found = spans(logits)
    assert places == [[3, 8], [0, 8], [3, 5], [6, 8], [0, 2], [0, 5]]
    assert found == [[3, 2], [1, 2], [3, 0], [0, 2], [1, 0.5], [1, 0]]
    assert spans(logits, most=2)[0] == [[3, 8], [0, 8]]
    assert spans(logits, longest=1)[0] == [[3, 5], [6, 8], [0, 2]]
    assert spans(logits, core=slice(2, 3))[0] == [[6, 8]]
    assert spans(logits, core=slice(1, 1)) == ([], [])


def test_no_context():
    assert spans(np.zeros((0, 2)), core=slice(0, 0), offsets=np.zeros((0, 2), np.int64)) == ([], [])


def test_logits_that_are_no_numbers_give_no_spans():
    assert spans([[np.nan, 0], [-np.inf, 0], [0, 1]])[0] == [[6, 8]]


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 14), st.integers(1, 30), st.data())
def test_the_best_of_all_spans_that_are_allowed(seed, tokens, longest, most, data):
    chance = np.random.default_rng(seed)
    logits = chance.normal(size=(tokens, 2)).astype(np.float32)
    begin = data.draw(st.integers(0, tokens))
    core = slice(begin, data.draw(st.integers(begin, tokens)))
    offsets = np.stack([np.arange(tokens), np.arange(tokens) + 1], 1)
    allowed = [
        (first, last)
        for first, last in itertools.product(range(tokens), repeat=2)
        if core.start <= first < core.stop and first <= last < first + longest
    ]
    allowed.sort(key=lambda pair: -(logits[pair[0], 0] + logits[pair[1], 1]))
    places, found = best_spans(logits, offsets, core, most, longest)
    assert [(begin, end - 1) for begin, end in places.tolist()] == allowed[:most]
    assert found.tolist() == [[logits[first, 0], logits[last, 1]] for first, last in allowed[:most]]


def window(*found, null=(0.0, 0.0)):
    """A window with spans: (begin, end, start logit, end logit)."""
    numbers = np.array(found, np.float32).reshape(-1, 4)
    return Spans(numbers[:, :2].astype(np.int64), numbers[:, 2:], np.array(null, np.float32))


def texts(found):
    return [each["text"] for each in found.nbest]


def test_the_best_of_all_windows():
    found = find(CONTEXT, [window((0, 2, 1, 1), (3, 5, 0, 1)), window((6, 8, 2, 1))], 20)
    assert (found.begin, found.end) == (6, 8)
    assert texts(found) == ["ef", "ab", "cd"]
    # e^3, e^2, e^1 among each other
    assert [each["probability"] for each in found.nbest] == pytest.approx([0.665241, 0.244728, 0.090031])
    assert (found.nbest[0]["start_logit"], found.nbest[0]["end_logit"]) == (2, 1)


def test_the_same_text_counts_once_with_its_best_place():
    found = find("ab ab", [window((3, 5, 2, 2), (0, 2, 1, 1)), window((0, 2, 0, 0))], 20)
    assert (found.begin, texts(found)) == (3, ["ab"])


def test_as_many_answers_as_asked_for():
    assert texts(find(CONTEXT, [window((0, 2, 3, 0), (0, 2, 2, 0), (3, 5, 1, 0), (6, 8, 0, 0))], 2)) == ["ab", "cd"]


@pytest.mark.parametrize(("threshold", "answer"), [(0.0, ""), (0.5, ""), (1.0, "ab"), (2.0, "ab")])
def test_no_answer_above_the_threshold(threshold, answer):
    """The null score is the smallest of all windows: 3 + 0; the best span has 2."""
    windows = [window((0, 2, 1, 1), null=(2, 5)), window((3, 5, 0, 1), null=(3, 0))]
    found = find(CONTEXT, windows, 20, with_negative=True, threshold=threshold)
    assert found.null_odds == pytest.approx(1.0)
    assert CONTEXT[found.begin : found.end] == answer
    assert texts(found) == ["", "ab", "cd"]
    assert (found.nbest[0]["start_logit"], found.nbest[0]["end_logit"]) == (3, 0)


def test_without_negative_there_is_always_an_answer():
    found = find(CONTEXT, [window((0, 2, -5, -5), null=(9, 9))], 20)
    assert (found.begin, found.end, texts(found)) == (0, 2, ["ab"])


@pytest.mark.parametrize("with_negative", [True, False])
@pytest.mark.parametrize("found", [[], [(2, 2, 9, 9)]])  # no span; a token that comes from no character
def test_nothing_found(with_negative, found):
    found = find(CONTEXT, [window(*found, null=(1, 2))], 20, with_negative)
    assert (found.begin, found.end, found.null_odds) == (0, 0, 3.0)
    assert texts(found) == ([""] if with_negative else [])
