import numpy as np
import pytest

from onion.tasks.pretraining.baselines.token_baselines import by_key, by_threshold, commonest, word_frequencies


def test_words_are_guessed_by_how_often_they_occur():
    train, held_out = [{"ids": np.array([1, 5, 5, 4, 2])}], [{"ids": np.array([1, 5, 6, 2])}]
    found = word_frequencies(train, held_out)
    # Of 10 counts 5 has three, and 6 one: there are 7 tokens, and three were seen.
    assert found["word_loss.frequencies"] == pytest.approx(-(np.log(0.3) + np.log(0.1)) / 2)
    assert found["perplexity.frequencies"] == pytest.approx(np.exp(found["word_loss.frequencies"]))
    assert found["word_accuracy.commonest"] == 0.5


def test_the_commonest_label():
    assert commonest(np.array([0, 1, 1]), np.array([1, 0, 0, 1, 2])) == 0.4


def test_the_commonest_label_of_a_key_and_of_all_for_a_new_one():
    train, labels = ["a", "a", "a", "b", "b"], np.array([1, 1, 0, 0, 0])
    assert by_key(train, labels, ["a", "b", "new", "new"], np.array([1, 0, 0, 1])) == 0.75


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [([0, 0, 1, 1, 1], 0.75), ([0, 0, 0, 0, 0], 0.25), ([1, 1, 1, 1, 1], 0.75), ([0, 1, 0, 1, 1], 1.0)],
)
def test_the_best_threshold_of_the_training_examples(labels, wanted):
    numbers, held_out = np.array([0, 1, 1.5, 2, 7]), np.array([0.5, 1.2, 1.6, 9])
    assert by_threshold(numbers, np.array(labels), held_out, np.array([0, 1, 1, 1])) == wanted


def test_the_threshold_is_the_best_of_all():
    chance = np.random.default_rng(0)
    for _ in range(50):
        numbers, labels = chance.integers(0, 6, 20), chance.integers(0, 2, 20)
        best = max(((numbers >= limit) == labels).mean() for limit in range(8))
        assert by_threshold(numbers, labels, numbers, labels) == best
