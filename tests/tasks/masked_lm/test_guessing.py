import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from onion.tasks.masked_lm.guessing import guesses

BATCH = {"input_ids": np.zeros((3, 4)), "lengths": [4, 2, 4], "masked_positions": [1, 3, 8]}
"""Two masked words in the first example, none in the second, one in the third."""


def test_the_best_words_and_the_loss_of_the_true_ones():
    scores = np.random.default_rng(1).normal(size=(3, 50)).astype(np.float32)
    first, second, third = guesses(scores, {**BATCH, "labels": np.array([4, 0, 49])}, 3)
    assert (first.ids.shape, second.ids.shape, third.ids.shape) == ((2, 3), (0, 3), (1, 3))
    assert np.concatenate([first.ids, third.ids]).tolist() == np.argsort(-scores, axis=1)[:, :3].tolist()
    np.testing.assert_allclose(third.probabilities[0], np.sort(softmax(scores[2]))[::-1][:3], rtol=1e-5)
    losses = -log_softmax(scores.astype(np.float64), axis=1)[[0, 1, 2], [4, 0, 49]]
    assert [*first.losses, *third.losses] == pytest.approx(losses.tolist(), rel=1e-5)


def test_of_equal_words_those_with_the_lower_ids():
    scores = np.array([[0, 1, 0, 1, 0, 1, 0], [2, 0, 0, 0, 0, 0, 3], [0, 0, 0, 0, 0, 0, 0]], np.float32)
    assert [each.ids.tolist() for each in guesses(scores, BATCH, 4)] == [
        [[1, 3, 5, 0], [6, 0, 1, 2]],
        [],
        [[0, 1, 2, 3]],
    ]


def test_a_word_of_no_probability_has_a_finite_loss():
    scores = np.array([[0.0, -300.0], [0.0, 0.0], [0.0, 0.0]], np.float32)
    first, _, _ = guesses(scores, {**BATCH, "labels": np.array([1, 0, 0])}, 1)
    assert first.losses.tolist() == pytest.approx([300.0, np.log(2)])


def test_as_many_guesses_as_words():
    (one,) = guesses(np.zeros((1, 5), np.float32), {**BATCH, "lengths": [4], "masked_positions": [0]}, 100)
    assert one.ids.tolist() == [[0, 1, 2, 3, 4]]


def test_no_masks():
    decoded = guesses(np.zeros((0, 5), np.float32), {**BATCH, "masked_positions": []}, 3)
    assert [(each.ids.shape, each.probabilities.shape, each.losses) for each in decoded] == [((0, 3), (0, 3), None)] * 3


def test_scores_that_are_no_numbers_still_give_words():
    scores = np.full((3, 5), np.nan, np.float32)
    assert guesses(scores, BATCH, 2)[0].ids.tolist() == [[0, 1], [0, 1]]
