"""What is said of the way back."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from onion import GradientMachine, OnionError, Runner
from onion.engine.backward import explained, is_once, many, once, refuse
from onion.testing import Batches
from tests.patience import PATIENCE

# isort: split
import paddle
from paddle import nn


def test_it_holds_within_nests_and_is_over_after_an_error():
    assert not is_once()
    with once:
        with once:
            assert is_once()
        assert is_once()
    with pytest.raises(ValueError), once:
        raise ValueError
    assert not is_once()


def test_it_can_be_taken_back_for_a_while():
    with once:
        with many, many:
            assert not is_once()
            with once:
                assert is_once()
        assert is_once()
    with many:
        assert not is_once()
    assert not is_once()


def test_it_is_said_in_one_thread_and_holds_there():
    """A prediction that takes it back for a while must not take it from the training."""
    with ThreadPoolExecutor(1) as other, once:
        assert not other.submit(is_once).result(PATIENCE)
        other.submit(many.__enter__).result(PATIENCE)
        assert is_once()
        other.submit(many.__exit__).result(PATIENCE)
        assert is_once()
    assert not is_once()


class Told(nn.Linear):
    """A network that notes what it is told."""

    def __init__(self):
        super().__init__(2, 1)
        self.told = []

    def forward(self, batch):
        self.told.append(is_once())
        return super().forward(batch)

    def loss(self, outputs, batch):
        self.told.append(is_once())
        return outputs.sum()


def test_a_gradient_machine_says_it_of_network_and_loss():
    network = Told()
    Runner(Batches([paddle.ones([1, 2])] * 2), GradientMachine(network)).run(passes=1)
    assert network.told == [True] * 4
    assert not is_once()


def test_a_refusal_is_told_though_somebody_puts_another_error_in_its_place():
    def as_paddle_does():
        with suppress(OnionError):
            refuse("because")
        raise OSError("res should not be null")

    with pytest.raises(OnionError, match=r"^because$") as caught, explained:
        as_paddle_does()
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("error", [OSError("own"), KeyboardInterrupt(), OnionError("own")], ids=repr)
def test_where_nothing_was_refused_an_error_stays_as_it_is(error):
    with pytest.raises(type(error)) as caught, explained:
        raise error
    assert caught.value is error
    with explained:
        explained.why = "the error was caught"
    assert explained.why is None
