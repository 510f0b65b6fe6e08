import numpy as np
import pytest

from onion.tasks.pretraining.sampling.draws import Draws


def test_the_numbers_are_those_of_splitmix64():
    # The first outputs of SplitMix64 for the seed 1234567, as in the published reference implementation.
    from onion.tasks.pretraining.sampling.draws import GOLDEN, mixed_each

    seed = np.uint64(1234567)
    found = mixed_each(seed + np.arange(1, 6, dtype=np.uint64) * np.uint64(GOLDEN))
    assert found.tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_equal_arguments_give_equal_numbers_and_others_give_others():
    drawn = {
        tuple(Draws.of(seed, pass_id, example).bits(2, purpose).tolist())
        for seed in range(3)
        for pass_id in range(3)
        for example in range(3)
        for purpose in ("mask", "segment", "segment-2")
    }
    assert len(drawn) == 81
    assert Draws.of(1, 2, 3).bits(5, "mask").tolist() == Draws.of(1, 2, 3).bits(9, "mask")[:5].tolist()


def test_arguments_are_not_interchangeable():
    assert len({Draws.of(*each).key for each in [(0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0)]}) == 5


def test_chances_are_uniform():
    chances = np.concatenate([Draws.of(0, 0, example).chances(50, "mask") for example in range(2000)])
    assert chances.min() >= 0
    assert chances.max() < 1
    assert chances.mean() == pytest.approx(0.5, abs=0.005)
    assert np.histogram(chances, bins=10, range=(0, 1))[0] == pytest.approx(10_000, rel=0.05)


def test_integers_and_orders():
    assert {Draws.of(0, 0, each).below(3, "which") for each in range(50)} == {0, 1, 2}
    orders = {tuple(Draws.of(0, 0, each).order(3, "order")) for each in range(100)}
    assert len(orders) == 6
