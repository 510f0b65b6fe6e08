"""The figures of a pretraining task against sums by hand."""

import math

import numpy as np
import pytest

from onion.tasks.pretraining.masking.levels import ENTITY, WORD
from onion.tasks.pretraining.metric import PretrainingMetric
from onion.tasks.pretraining.networks import Decoded, Judged


def judged(*each):
    """Losses, predictions and labels."""
    losses, predicted, labels = zip(*each, strict=True) if each else ((), (), ())
    return Judged(np.array(losses, np.float32), np.array(predicted, np.int64), np.array(labels, np.int64))


def test_words_are_measured_overall_and_by_kind_over_all_batches():
    metric = PretrainingMetric()
    metric.reset()
    metric.update(Decoded(judged((1.0, 5, 5), (2.0, 5, 6)), np.array([WORD, ENTITY]), judged()), {})
    metric.update(Decoded(judged((4.0, 7, 7), (1.0, 8, 9)), np.array([ENTITY, ENTITY]), judged()), {})
    expected = {
        "word_loss": 2.0,
        "word_loss.word": 1.0,
        "word_loss.entity": 7 / 3,
        "word_accuracy": 0.5,
        "word_accuracy.word": 1.0,
        "word_accuracy.entity": 1 / 3,
    }
    expected |= {
        name.replace("word_loss", "perplexity"): math.exp(value) for name, value in expected.items() if "loss" in name
    }
    assert metric.result() == pytest.approx(expected)
    assert {"word_loss.entity", "perplexity.word"} < PretrainingMetric.less_is_better


def test_classes_are_measured_by_loss_accuracy_and_the_mean_f1():
    metric = PretrainingMetric(("no", "yes", "never seen"), words=False)
    metric.reset()
    metric.update(Decoded(judged(), np.array([], np.int64), judged((0.5, 1, 1), (1.5, 1, 0))), {})
    metric.update(Decoded(judged(), np.array([], np.int64), judged((1.0, 0, 0))), {})
    f1_of_no, f1_of_yes = 2 / 3, 2 / 3  # of each: one right, one found or named too much
    expected = {"class_loss": 1.0, "accuracy": 2 / 3, "f1_macro": (f1_of_no + f1_of_yes + 0) / 3}
    assert metric.result() == pytest.approx(expected)
