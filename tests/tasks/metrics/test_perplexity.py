import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax
from sklearn.metrics import accuracy_score, log_loss

from onion.tasks.metrics.perplexity import Guesses, PerplexityMetric


def guesses(best, losses):
    """Of one example: the best guess and the loss of each word."""
    ids = np.array([[one, one + 1] for one in best], np.int64).reshape(-1, 2)
    return Guesses(ids, np.zeros(ids.shape, np.float32), np.array(losses, np.float32))


def test_a_network_that_has_gone_astray():
    metric = PerplexityMetric()
    metric.update([guesses([1], [1e6])], {"labels": np.array([1])})
    assert metric.result() == {"perplexity": float("inf"), "accuracy": 1.0}


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=8), st.integers(0, 1000))
def test_against_scikit_learn_however_the_words_are_spread_over_examples_and_batches(examples, seed):
    truth = [word for words in examples for word in words]
    if not truth:
        return
    scores = np.random.default_rng(seed).normal(0, 2, (len(truth), 6))
    logs = log_softmax(scores, axis=1)
    metric, begin = PerplexityMetric(), 0
    for words in examples:
        part = slice(begin, begin + len(words))
        order = np.argsort(-scores[part], axis=1)
        losses = -logs[part][np.arange(len(words)), np.array(words, int)]
        metric.update([Guesses(order, order * 0.0, losses)], {"labels": np.array(words, np.int64)})
        begin += len(words)
    wanted = log_loss(truth, np.exp(logs), labels=range(6)), accuracy_score(truth, scores.argmax(axis=1))
    assert (np.log(metric.result()["perplexity"]), metric.result()["accuracy"]) == pytest.approx(wanted)
