"""ERNIE 1.0's masks, held against its algorithm as one would write it down, token by token."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.tasks.pretraining.masking.ernie import masked
from tests.tasks.pretraining.samples import MASK, some_samples

VOCAB = 100


def by_hand(samples, words, seed):
    """Mask token by token; return padded rows, positions and labels."""
    generator = np.random.RandomState(seed)
    total = sum(len(each.ids) for each in samples)
    chance, word = generator.rand(total).tolist(), generator.randint(1, VOCAB, size=total).tolist()
    longest = max(len(each.ids) for each in samples)
    rows, positions, labels, place = [], [], [], 0
    for number, each in enumerate(samples):
        row = each.ids.tolist()
        chosen = False
        for column, unit in enumerate(each.units.tolist()):
            own, scale = chance[place], 1.0
            if unit == 0 or (unit == 1 and not words):
                chosen, scale = own <= 0.15, 0.15
            if unit != -1 and chosen:
                positions.append(number * longest + column)
                labels.append(row[column])
                if own > 0.2 * scale:
                    row[column] = MASK
                elif own > 0.1 * scale:
                    row[column] = word[place]
            place += 1
        rows.append(row + [0] * (longest - len(row)))
    return rows, positions, labels


@pytest.mark.parametrize("words", [True, False])
@given(samples=some_samples, seed=st.integers(0, 1000))
def test_the_masks_are_ernies(words, samples, seed):
    found = masked(samples, words, VOCAB, MASK, np.random.RandomState(seed))
    assert (found.ids.tolist(), found.positions.tolist(), found.labels.tolist()) == by_hand(samples, words, seed)
