import numpy as np
import pytest

from onion.tasks.metrics.question_answering import ReadingMetric
from onion.tasks.metrics.squad import alike
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
