"""LengthMatching: a wrong text is similar in length, of another group, and not always the same one."""

import numpy as np
import pytest

from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.pretraining.sampling.length_matching import LengthMatching


def drawn(matching, text, **options):
    """The texts that are drawn instead of a text, for 2000 examples."""
    return [matching.in_another(text, Draws.of(0, 0, number), **options) for number in range(2000)]


@pytest.mark.parametrize("text", [0, 250, 499])
def test_a_text_of_another_group_is_any_one_where_its_group_has_most_of_them(text):
    matching = LengthMatching.of(np.full(600, 7), np.repeat([0, 1, 2], [500, 50, 50]))
    counts = np.bincount(drawn(matching, text), minlength=600)
    assert counts[:500].sum() == 0
    assert counts[500:].min() > 0
    assert counts.max() < 60  # 20 are expected of each; the one behind the group may have a few more


def test_the_first_of_a_group_is_drawn_only_where_there_is_nothing_else():
    matching = LengthMatching.of(np.array([7, 7, 7, 7, 7, 7, 3, 3]), np.array([0, 0, 1, 1, 2, 2, 3, 4]))
    assert set(drawn(matching, 0)) == {2, 3, 4, 5}
    assert set(drawn(matching, 0, but_first=True)) == {3, 5}
    assert set(drawn(matching, 6, but_first=True)) == {7}
