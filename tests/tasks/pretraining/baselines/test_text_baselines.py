"""Baselines, counted by hand."""

import numpy as np
import pytest

from onion.tasks.pretraining.baselines.text_baselines import by_number, commonest, overlap
from onion.tasks.pretraining.examples import joined


def labelled(*labels):
    return [{"label": label} for label in labels]


def test_the_commonest_label():
    assert commonest(labelled(0, 1, 1), labelled(1, 0, 0, 2)) == 0.25


def test_numbers_say_the_commonest_label_of_their_part():
    train = [{"label": int(number >= 50), "number": number} for number in range(100)]
    train += [{"label": 2, "number": 200}] * 20
    held_out = [{"label": label, "number": number} for number, label in ((-5, 0), (49, 0), (60, 1), (999, 2), (10, 1))]
    assert by_number(train, held_out, lambda each: each["number"]) == 0.8


def test_a_part_without_examples_says_the_commonest_of_all():
    train = labelled(1, 1, 0)
    assert by_number(train, labelled(1, 0), lambda each: 7.0) == 0.5


def test_what_pairs_share():
    def pair(one, other, label):
        return {**joined([(np.array(ids), np.zeros(len(ids), np.uint8)) for ids in (one, other)], 1, 2), "label": label}

    # [5 6] and [6 5] share both tokens and no bigram; special tokens do not count.
    far, near = pair([5, 6], [7, 8], 0), pair([5, 6], [9, 5, 6], 1)
    swapped = pair([5, 6], [6, 5], 0)
    assert overlap([far, near] * 9, [far, near, swapped]) == {
        "accuracy.shared_tokens": pytest.approx(2 / 3),
        "accuracy.shared_bigrams": 1.0,
    }
    assert overlap([far, near], [pair([], [], 0)]) == {"accuracy.shared_tokens": 1.0, "accuracy.shared_bigrams": 1.0}
