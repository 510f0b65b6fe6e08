import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.tasks.metrics.question_answering import ReadingMetric, alike, best_threshold
from onion.tasks.question_answering.answers import Found
from onion.tasks.question_answering.questions import Answer, Question


def question(*answers):
    return Question("a.json", "a", "?", "the film was warm", tuple(Answer(text, 0) for text in answers))


def metric_of(*questions):
    """A metric whose answers are the texts that are handed in for the windows, joined in their order."""
    return ReadingMetric(questions, lambda asked, windows: found(" ".join(windows)), alike)


def found(text, odds=0.0, best=""):
    return Found(0, len(text), text, [], odds, best)


def update(metric, *found):
    """Hand in (place, row, text) as one batch."""
    batch = {"places": [place for place, _, _ in found], "windows": [{"row": row} for _, row, _ in found]}
    metric.update([text for _, _, text in found], batch)


def test_the_best_of_several_answers_counts():
    metric = metric_of(question("cold", "warm film"), question("film"))
    update(metric, (0, 0, "warm"), (1, 1, "The film"))
    # F1 of the first: precision 1, recall 1/2
    assert metric.result() == pytest.approx({"exact_match": 1 / 2, "f1": (2 / 3 + 1) / 2})


def test_exact_match_and_f1_are_each_the_best():
    metric = metric_of(question("x y", "x"))
    update(metric, (0, 0, "x"))
    assert metric.result() == {"exact_match": 1.0, "f1": 1.0}


def test_windows_are_taken_in_their_order_over_all_batches():
    metric = metric_of(question("a film"), question("b c"))
    update(metric, (3, 1, "c"), (0, 0, "film"))
    update(metric, (2, 1, "b"))
    assert metric.result()["exact_match"] == 1.0


def test_questions_without_answer():
    metric = metric_of(question("film"), question(), question(), question("warm day"))
    update(metric, (0, 0, "film"), (1, 1, ""), (2, 2, "film"), (3, 3, "warm"))
    assert metric.result() == pytest.approx(
        {
            "exact_match": 2 / 4,
            "f1": (1 + 1 + 0 + 2 / 3) / 4,
            "has_answer_exact_match": 1 / 2,
            "has_answer_f1": (1 + 2 / 3) / 2,
            "no_answer_exact_match": 1 / 2,
        }
    )


def test_the_best_threshold_for_questions_without_answer():
    """Each is given as (odds, what is answered if it is answered)."""
    asked = [question("warm"), question(), question("film"), question(), question("the plot")]
    given = [(-2.0, "warm day"), (-1.0, "film"), (0.5, "film"), (1.5, "warm"), (3.0, "plot")]

    def find(question, windows):
        [(odds, best)] = windows
        return found(best if odds <= 0 else "", odds, best)

    metric = ReadingMetric(asked, find, alike, with_negative=True)
    metric.update(given, {"places": range(5), "windows": [{"row": row} for row in range(5)]})
    figures = metric.result()
    # Right by number of questions that are answered, exactly: 2, 2, 1, 2, 1, 2; by F1: 2, 8/3, 5/3, 8/3, 5/3, 8/3.
    assert {name: value for name, value in figures.items() if name.startswith("best")} == pytest.approx(
        {
            "best_exact_match": 2 / 5,
            "best_exact_match_threshold": -2.5,
            "best_f1": 8 / 15,
            "best_f1_threshold": -1.5,
        }
    )
    assert figures["exact_match"] == 1 / 5  # with the threshold of the finder


def test_no_threshold_where_it_would_change_nothing():
    metric = metric_of(question("film"), question())
    update(metric, (0, 0, "film"), (1, 1, ""))
    assert not any(name.startswith("best") for name in metric.result())
    metric = ReadingMetric([question("film")], lambda asked, windows: found("film"), alike, with_negative=True)
    update(metric, (0, 0, "film"))
    assert metric.result().keys() == {"exact_match", "f1"}


def test_questions_without_answer_only():
    metric = metric_of(question())
    update(metric, (0, 0, ""))
    assert metric.result()["no_answer_exact_match"] == metric.result()["f1"] == 1.0
    assert metric.result()["has_answer_f1"] == 0.0


def test_reset_forgets():
    metric = metric_of(question("film"))
    update(metric, (0, 0, "film"))
    metric.reset()
    assert metric.result() == {"exact_match": 0.0, "f1": 0.0}
    update(metric, (0, 0, "cold"))
    assert metric.result() == {"exact_match": 0.0, "f1": 0.0}
    assert all(isinstance(value, float) and not isinstance(value, np.floating) for value in metric.result().values())


@pytest.mark.parametrize(
    ("answer", "truth", "same", "f1"),
    [
        ("The Broncos", "broncos", 1, 1),
        ("Denver Broncos", "the Denver  Broncos!", 1, 1),
        ("Denver", "Denver Broncos", 0, 2 / 3),  # precision 1, recall 1/2
        ("x b c x b", "b b d", 0, 2 * (2 / 5) * (2 / 3) / (2 / 5 + 2 / 3)),  # b twice in both
        ("Denver", "Carolina", 0, 0),
        ("theatre", "atre", 0, 0),  # an article is a word
        ("U.S.", "US", 1, 1),
        ("", "", 1, 1),
        ("", "x", 0, 0),
        ("the", "", 1, 1),
    ],
)
def test_answers_by_hand(answer, truth, same, f1):
    assert alike(answer, truth) == (same, pytest.approx(f1))


def letters_only(text):
    """SQuAD's normalisation word by word, without patterns."""
    kept = "".join(each for each in text.lower() if each not in set(string.punctuation))
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def overlap(answer, truth):
    """Precision, recall and F1 as the SQuAD paper describes them (section 6.1)."""
    said, true = letters_only(answer), letters_only(truth)
    if not said or not true:
        return float(said == true)
    left, shared = list(true), 0
    for word in said:
        if word in left:
            left.remove(word)
            shared += 1
    if not shared:
        return 0.0
    precision, recall = shared / len(said), shared / len(true)
    return 2 * precision * recall / (precision + recall)


WORDS = st.lists(st.sampled_from(["a", "the", "The", "cat", "cat.", "dog", "DOG", ",", "fish-bone"]), max_size=6)


@settings(max_examples=300)
@given(WORDS, WORDS)
def test_answers_against_the_definition(said, true):
    answer, truth = " ".join(said), " ".join(true)
    assert alike(answer, truth) == (letters_only(answer) == letters_only(truth), pytest.approx(overlap(answer, truth)))


ODDS = st.sampled_from([-2.5, -1.0, -0.25, 0.0, 0.25, 7.0]) | st.floats(-30, 30, width=32)
SCORES = st.sampled_from([0.0, 0.5, 1.0])


def reached(threshold, odds, answered, refused):
    """The mean score with a threshold, by its definition."""
    return np.where(odds <= threshold, answered, refused).mean()


@given(st.lists(st.tuples(ODDS, SCORES, SCORES), min_size=1, max_size=12))
def test_no_threshold_is_better_and_no_smaller_one_as_good(questions):
    odds, answered, refused = np.array(questions, np.float64).T
    threshold, score = best_threshold(odds, answered, refused)
    tried = [odds.min() - 1, *np.unique(odds)]  # every way to part the questions
    scores = [reached(each, odds, answered, refused) for each in tried]
    assert score == pytest.approx(max(scores))
    assert reached(threshold, odds, answered, refused) == pytest.approx(score)
    smaller = [each for each, other in zip(tried, scores, strict=True) if other > score - 1e-9]
    assert (odds <= threshold).tolist() == (odds <= smaller[0]).tolist()


def test_thresholds_by_hand():
    odds, answered, refused = np.array([3.0, -1.0, 1.0]), np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0])
    assert best_threshold(odds, answered, refused) == (2.0, 1.0)
    assert best_threshold(odds, refused, answered) == (-1.5, pytest.approx(2 / 3))
    assert best_threshold(odds, np.ones(3), np.zeros(3)) == (3.5, 1.0)


def test_equal_odds_go_together():
    odds = np.zeros(3)
    assert best_threshold(odds, np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0])) == (-0.5, pytest.approx(2 / 3))
    assert best_threshold(odds, np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])) == (0.5, pytest.approx(2 / 3))
