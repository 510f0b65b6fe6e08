"""LossScale: grows after so many good updates, shrinks after so many bad ones, resumed exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion import CompositionError, LossScale


def values(scale, story):
    """Return the scale after each update of a story of good (+) and bad (-) ones."""
    found = []
    for each in story:
        scale.update(each == "+")
        found.append(scale.value)
    return found


def test_the_defaults_are_those_of_paddles_grad_scaler():
    assert LossScale() == LossScale(65536.0, 2.0, 2000, 0.5, 1, 1.0)


STORIES = {
    "shrinks at once, grows after three good ones": (
        LossScale(16.0, growth_interval=3),
        "++-+++--+++",
        [16, 16, 8, 8, 8, 16, 8, 4, 4, 4, 8],
    ),
    "shrinks after two bad ones in a row": (
        LossScale(16.0, growth_interval=9, backoff_interval=2),
        "-+--+----",
        [16, 16, 16, 8, 8, 8, 4, 4, 2],
    ),
    "counts again after growing": (LossScale(1.0, growth_interval=2), "+++++", [1, 2, 2, 4, 4]),
    "never falls below the floor": (LossScale(4.0, floor=1.5), "----", [2, 1.5, 1.5, 1.5]),
    "never exceeds 32 bits": (LossScale(2.0**126, growth_interval=1), "++-", [2.0**127, 2.0**127, 2.0**126]),
    "is fixed": (LossScale(128.0, growth_factor=1, growth_interval=1, backoff_factor=1), "+-+-", [128] * 4),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_scale(story):
    scale, updates, expected = STORIES[story]
    assert values(scale, updates) == expected


def test_ernies_constants():
    scale = LossScale.ernie()
    assert values(scale, "-") == [102400]
    assert values(scale, "-") == [102400 * 0.8]
    assert values(scale, "+" * 100)[98:] == [102400 * 0.8, 102400 * 1.6]
    low = values(LossScale.ernie(), "-" * 200)
    assert low[-1] == min(low) == 1


def ernies_rule(story, scale, incr_every, decr_every, incr, decr):
    """fluid's update_loss_scaling with the floor of ernie/optimization.py, reimplemented."""
    good = bad = 0
    for each in story:
        if each == "+":
            bad, good = 0, good + 1
            if good == incr_every:
                scale, good = scale * incr, 0
        else:
            good, bad = 0, bad + 1
            if bad == decr_every:
                scale, bad = max(1.0, scale * decr), 0
    return scale


@given(st.text("+-", max_size=60), st.integers(1, 5), st.integers(1, 4))
def test_it_follows_the_rule_of_fluid(story, growth_every, backoff_every):
    scale = LossScale(64.0, 2.0, growth_every, 0.8, backoff_every)
    values(scale, story)
    assert scale.value == ernies_rule(story, 64.0, growth_every, backoff_every, 2.0, 0.8)


@given(st.text("+-", max_size=40), st.text("+-", max_size=40))
def test_it_goes_on_exactly_from_its_state(before, after):
    whole, resumed = (LossScale(64.0, growth_interval=3, backoff_interval=2) for _ in range(2))
    values(whole, before)
    resumed.load_state_dict(whole.state_dict())
    assert values(resumed, after) == values(whole, after)
    assert resumed == whole


KINDS = ("growth", "backoff")
BOUNDS = r"floor is more than 0, value no less, and no more than 2\*\*127"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"growth_factor": 0.5}, "growth_factor is at least 1"),
        *(({"backoff_factor": wrong}, "backoff_factor is more than 0 and at most 1") for wrong in (0.0, 1.5)),
        *(({f"{name}_interval": 0}, "growth_interval and backoff_interval are at least 1") for name in KINDS),
        ({"value": 0.0, "floor": 0.0}, BOUNDS),
        *(({"value": wrong}, BOUNDS) for wrong in (0.5, 2.0**128, float("inf"), float("nan"))),
    ],
)
def test_constants_out_of_range_are_refused(wrong, said):
    with pytest.raises(CompositionError, match=said):
        LossScale(**wrong)
