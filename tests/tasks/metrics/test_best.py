"""Which figure is the best one to go by: known to the metric, more or less being better."""

import numpy as np
import pytest

from onion import DataError
from onion.tasks.data.labels import Labels
from onion.tasks.metrics.best import best_figure
from onion.tasks.metrics.chunk_f1 import ChunkMetric
from onion.tasks.metrics.classification import ClassificationMetric
from onion.tasks.metrics.correlation import CorrelationMetric
from onion.tasks.metrics.multilabel import MultiLabelMetric
from onion.tasks.metrics.perplexity import PerplexityMetric
from onion.tasks.metrics.question_answering import ReadingMetric
from onion.tasks.metrics.ranking import PairMetric, RankingMetric, decisions, ranking
from onion.tasks.metrics.squad import alike
from onion.tasks.question_answering.questions import Answer, Question

LABELS = Labels(["bad", "good"])
METRICS = {
    "classify": lambda: ClassificationMetric(LABELS),
    "regress": CorrelationMetric,
    "match": lambda: RankingMetric([decisions, ranking], np.zeros(0, np.int64)),
    "pairwise": PairMetric,
    "multilabel": lambda: MultiLabelMetric(LABELS, 0.5),
    "tag": lambda: ChunkMetric(Labels(["O", "B-LOC", "I-LOC"])),
    "mask": PerplexityMetric,
}


def reading(*answers, with_negative=False):
    questions = [Question("here", "id", "who?", "he is", (Answer(text, 0),) if text else ()) for text in answers]
    return ReadingMetric(questions, lambda question, spans: None, alike, with_negative)


@pytest.mark.parametrize(
    ("task", "figure", "mode"),
    [
        ("classify", "f1_macro", "max"),
        ("classify", "f1", "max"),
        ("regress", "spearman", "max"),
        ("regress", "mean_squared_error", "min"),
        ("match", "mrr", "max"),
        ("pairwise", "accuracy", "max"),
        ("multilabel", "f1_micro", "max"),
        ("tag", "f1.LOC", "max"),
        ("mask", "perplexity", "min"),
    ],
)
def test_a_figure_is_found_by_either_name(task, figure, mode):
    assert best_figure(METRICS[task](), figure) == (figure, mode)
    assert best_figure(METRICS[task](), f"dev.{figure}") == (figure, mode)


@pytest.mark.parametrize("task", METRICS)
def test_an_unknown_figure_is_refused_with_those_that_there_are(task):
    known = ", ".join(METRICS[task]().result())
    with pytest.raises(DataError, match=f"^best: the test has no figure 'acuracy'; it has {known}$"):
        best_figure(METRICS[task](), "acuracy")


def test_reading_has_the_figures_that_its_questions_will_have():
    assert best_figure(reading("he"), "f1") == ("f1", "max")
    for wanted in ("has_answer_f1", "no_answer_f1", "best_f1"):
        with pytest.raises(DataError, match=r"it has exact_match, f1$"):
            best_figure(reading("he"), wanted)
    assert best_figure(reading("he", None), "has_answer_f1") == ("has_answer_f1", "max")
    assert best_figure(reading("he", None), "no_answer_exact_match") == ("no_answer_exact_match", "max")
    assert best_figure(reading("he", None, with_negative=True), "best_f1") == ("best_f1", "max")
    with pytest.raises(DataError, match="no figure 'best_f1_threshold'"):
        best_figure(reading("he", None, with_negative=True), "best_f1_threshold")


class Own:
    """A metric of the user's that cannot tell anything of nothing."""

    less_is_better = frozenset({"distance"})

    def result(self):
        raise ZeroDivisionError


def test_of_a_metric_that_cannot_tell_yet_every_figure_is_taken():
    assert best_figure(Own(), "dev.distance") == ("distance", "min")
    assert best_figure(Own(), "likeness") == ("likeness", "max")
