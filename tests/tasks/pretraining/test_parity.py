"""ERNIE 1.0's pretraining by onion beside a loop in plain Paddle, on lines drawn at random (``make pretraining-parity``
does the same on ERNIE's own)."""

import dataclasses
import math

import numpy as np
import pytest

from onion.tasks.pretraining.corpus.ernie_examples import example_of
from scripts.pretraining_parity import plain
from scripts.pretraining_parity.__main__ import TOLERANCE, compare
from scripts.pretraining_parity.material import Recipe, first
from tests.tasks.pretraining.samples import sample

VOCAB_SIZE = 120


@pytest.fixture(scope="module")
def lines():
    """Lines of 2 to 16 units of a tenth of the vocabulary, which is soon learned."""
    chance = np.random.default_rng(3)

    def units():
        return [chance.integers(4, 16, chance.integers(1, 4)).tolist() for _ in range(chance.integers(1, 9))]

    return [example_of(sample(units(), units(), label=int(chance.integers(2)))) for _ in range(30 * 4)]


def test_thirty_steps_cost_what_they_cost_in_plain_paddle(lines):
    found = compare(lines, Recipe(batch_size=4), VOCAB_SIZE)
    assert len(found.onion) == 30
    assert max(found.apart) <= TOLERANCE
    assert (
        np.mean(found.onion[-5:]) < np.mean(found.onion[:5]) - 0.2
    )  # it has learned, so the costs tell of the updates


@pytest.mark.parametrize("changed", [{"weight_decay": 0.5}, {"clip": 1e9}, {"warmup_steps": 0}], ids=str)
def test_the_costs_tell_of_each_part_of_the_update(lines, changed, monkeypatch):
    """The plain loop with another recipe than onion's is not equal."""
    recipe = Recipe(batch_size=4, steps=12)
    other = dataclasses.replace(recipe, **changed)
    costs = plain.costs
    monkeypatch.setattr(plain, "costs", lambda network, batches, _, epsilon: costs(network, batches, other, epsilon))
    assert max(compare(lines, recipe, VOCAB_SIZE).apart) > 10 * TOLERANCE


def test_the_rate_rises_from_nothing_and_jumps_down_to_what_it_would_be_without_the_rise():
    recipe = Recipe(learning_rate=1.0, warmup_steps=10, decay_steps=40)
    assert [plain.rate(step, recipe) for step in (0, 5, 9, 10, 30)] == pytest.approx([0, 0.5, 0.9, 0.75, 0.25])


def test_too_few_lines_are_refused(lines):
    with pytest.raises(ValueError, match="30 batches of 5 need 150 lines, not 120"):
        first(lines, Recipe(batch_size=5))


def test_the_epsilon_of_old_is_larger_in_the_first_steps():
    assert plain.of_paddle(math.sqrt(1 - plain.BETA2)) < 0.04 * plain.of_fluid(math.sqrt(1 - plain.BETA2))
