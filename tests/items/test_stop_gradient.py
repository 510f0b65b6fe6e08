"""Frozen: what is inside learns through parameters, and leaves nothing in them."""

import re

import numpy as np
import paddle
import pytest

from onion import (
    CompositionError,
    Freeze,
    GradientMachine,
    Observer,
    ParameterUpdater,
    Repeat,
    Runner,
    StopGradient,
    Unfreeze,
)
from onion.testing import Batches, Failing, PlannedError
from tests.toys import bits

POINTS = [np.random.default_rng(place).normal(size=(8, 2)).astype("float32") for place in range(3)]


class Pair:
    """A generator and a discriminator that always begin alike."""

    def __init__(self):
        paddle.seed(0)
        self.generator, self.discriminator = (
            paddle.nn.Sequential(paddle.nn.Linear(2, 4), paddle.nn.Tanh(), paddle.nn.Linear(4, width))
            for width in (2, 1)
        )
        self.movers = [
            paddle.optimizer.Momentum(0.1, parameters=each.parameters())
            for each in (self.discriminator, self.generator)
        ]

    def told_apart(self, scores, points):
        return self.discriminator(self.generator(points).detach()).mean() - paddle.tanh(scores).mean()

    def generator_loss(self, fakes, points):
        return -self.discriminator(fakes).mean()

    def onion(self, *rings, inside=(), outside=()):
        return Runner(
            *outside,
            Batches(POINTS),
            Runner(ParameterUpdater(self.movers[0]), GradientMachine(self.discriminator, self.told_apart)),
            Runner(
                *rings, ParameterUpdater(self.movers[1]), *inside, GradientMachine(self.generator, self.generator_loss)
            ),
        )

    def bits(self):
        return bits(self.generator), bits(self.discriminator)

    def machine(self):
        return GradientMachine(self.discriminator, self.told_apart)


def by_hand(passes):
    """The same training as a plain loop, the discriminator's gradients being cleared after the generator's step."""
    pair = Pair()
    for points in map(paddle.to_tensor, POINTS * passes):
        pair.told_apart(pair.discriminator(points), points).backward()
        pair.movers[0].step()
        pair.movers[0].clear_grad()
        pair.generator_loss(pair.generator(points), points).backward()
        pair.movers[1].step()
        for mover in pair.movers:
            mover.clear_grad()
    return pair.bits()


def gradients(network):
    return [parameter.grad is not None for parameter in network.parameters()]


def test_two_networks_learn_from_each_other_as_in_a_loop_that_clears_by_hand():
    pair, careless = Pair(), Pair()
    pair.onion(StopGradient(pair.discriminator)).run(passes=2)
    careless.onion().run(passes=2)
    assert pair.bits() == by_hand(2)
    assert careless.bits() != by_hand(2)


@pytest.mark.parametrize("inner", [False, True], ids=["outside the updater", "inside it"])
def test_no_gradient_is_left_and_the_discriminator_trains_on(inner):
    pair, seen = Pair(), []
    frozen = StopGradient(pair.discriminator)
    note = Observer(on_batch_end=lambda state: seen.append((gradients(pair.discriminator), gradients(pair.generator))))
    rings = {"inside": [frozen, note]} if inner else {"inside": [note]}
    pair.onion(*([] if inner else [frozen]), **rings).run(passes=1)
    assert seen == [([False] * 4, [True] * 4)] * 3
    assert not any(parameter.stop_gradient for parameter in pair.discriminator.parameters())


@pytest.mark.parametrize("pattern", ["2.*", re.compile(r"^2\.")])
def test_a_pattern_leaves_the_others_their_gradients(pattern):
    pair, seen = Pair(), []
    note = Observer(on_batch_end=lambda state: seen.append(gradients(pair.discriminator)))
    pair.onion(StopGradient(pair.discriminator, pattern), inside=[note]).run(passes=1, steps=1)
    assert seen == [[True, True, False, False]]


def test_what_was_frozen_before_stays_so():
    pair = Pair()
    pair.discriminator[0].weight.stop_gradient = True
    pair.onion(StopGradient(pair.discriminator)).run(passes=1)
    assert [each.stop_gradient for each in pair.discriminator.parameters()] == [True, False, False, False]


@pytest.mark.parametrize("way", ["in", "out"])
def test_after_an_error_inside_everything_trains_again(way):
    pair = Pair()
    with pytest.raises(PlannedError):
        pair.onion(StopGradient(pair.discriminator), inside=[Failing("on_batch", way, step=1)]).run(passes=1)
    assert not any(parameter.stop_gradient for parameter in pair.discriminator.parameters())


@pytest.mark.parametrize("inside", [False, True], ids=["around the repetition", "inside it"])
def test_repeated_inside_and_outside_it_holds_every_time(inside):
    pair, seen = Pair(), []
    rings = [StopGradient(pair.discriminator), Repeat(2)]
    note = Observer(on_batch_end=lambda state: seen.append(any(gradients(pair.discriminator))))
    pair.onion(*(reversed(rings) if inside else rings), inside=[note]).run(passes=1)
    assert seen == [False] * 6


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_without_a_gradient_machine_inside_it_is_refused():
    pair = Pair()
    said = r"stop_gradient has no gradient machine inside it; move it outside of one"
    with pytest.raises(CompositionError, match=said):
        Runner(Batches(1), pair.machine(), StopGradient(pair.discriminator))


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_an_updater_that_would_never_move_anything_is_refused(where):
    def onion(*pattern):
        rings = [StopGradient(pair.discriminator, *pattern), ParameterUpdater(pair.movers[0])]
        Runner(Batches(POINTS), *(rings if where == "inside" else reversed(rings)), pair.machine())

    pair = Pair()
    said = rf"parameter_updater is {where} stop_gradient, which keeps gradients from all"
    with pytest.raises(CompositionError, match=said):
        onion()
    onion("0.*")
    generator = GradientMachine(pair.generator, pair.generator_loss)
    both = [ParameterUpdater(each) for each in pair.movers]
    Runner(Batches(POINTS), *both, pair.machine(), StopGradient(pair.discriminator), generator)


def test_a_pattern_that_matches_nothing_is_refused():
    with pytest.raises(CompositionError, match=r"no parameter of Sequential matches 'head\.\*'"):
        StopGradient(Pair().discriminator, "head.*")


@pytest.mark.parametrize("kind", [lambda n: Freeze(n, "0.*", until=2), lambda n: Unfreeze(n, "0.*", at=2)])
def test_it_refuses_a_freeze_of_the_same_network_inside(kind):
    pair = Pair()
    with pytest.raises(CompositionError, match=r"freeze is inside stop_gradient; move it outside"):
        pair.onion(StopGradient(pair.discriminator), kind(pair.discriminator))
    pair.onion(StopGradient(pair.discriminator), kind(pair.generator))
