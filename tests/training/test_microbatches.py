"""What Accumulate and SplitOnMemoryError do alike (more of it in their own tests)."""

import numpy as np
import paddle
import pytest

from onion import CompositionError, ParameterUpdater, Runner, RunnerItem, SkipIf
from onion.data.batch_parts import examples
from onion.errors import DataError
from onion.testing import Batches, Failing, PlannedError, toy_examples, toy_network
from onion.training.microbatches import (
    GradientRollback,
    check_inside_updater,
    machines_inside,
    run_microbatches,
    updaters_around,
    weigh,
)
from tests.toys import bits


class Parts(RunnerItem):
    """Run the inside for each number of a batch, which weighs what it is."""

    def on_batch(self, state):
        parts = [(f"task {number}", number) for number in state.batch]
        yield from run_microbatches(state, parts, [float(number) for number in state.batch])


class Costs(RunnerItem):
    """Note what is seen, and loss ten times the batch."""

    def __init__(self):
        self.seen = []

    def on_batch(self, state):
        self.seen.append((state.task, state.batch, state.share))
        state.loss = 10.0 * state.batch


def test_each_part_has_its_task_and_share_and_the_loss_is_the_weighted_mean():
    losses = Costs()
    state = Runner(Batches([[1, 3]]), Parts(), losses).run(passes=1)
    assert losses.seen == [("task 1", 1, 0.25), ("task 3", 3, 0.75)]
    assert state.loss == 10 * 0.25 + 30 * 0.75
    assert (state.share, state.step, state.batch) == (1.0, 1, 3)


def test_parts_that_weigh_nothing_are_left_out():
    losses = Costs()
    state = Runner(Batches([[0, 2, 0], [0, 0]]), Parts(), losses).run(passes=1)
    assert losses.seen == [("task 2", 2, 1.0)]
    assert (state.loss, state.step) == (None, 1), "the second batch did not count, and has no loss"


def test_a_part_that_is_skipped_inside_adds_no_loss_of_another():
    state = Runner(Batches([[1, 1, 2]]), Parts(), SkipIf(lambda state: state.batch == 2), Costs()).run(passes=1)
    assert state.loss == 10 * 0.25 * 2


def test_the_share_is_put_back_after_an_error():
    class Look(RunnerItem):
        def on_batch(self, state):
            try:
                yield
            finally:
                shares.append(state.share)

    shares = []
    with pytest.raises(PlannedError):
        Runner(Batches([[1, 3]]), Look(), Parts(), Failing("on_batch")).run(passes=1)
    assert shares == [1.0]


def test_weights():
    assert weigh([1, 2, 3], examples) == 3
    assert weigh(None, lambda batch: np.int64(7)) == 7
    with pytest.raises(DataError, match="Give weight="):
        weigh({"a": [1], "b": [1, 2]}, examples)
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(DataError, match="a weight must be >= 0"):
            weigh(None, lambda batch, wrong=wrong: wrong)
    with pytest.raises(DataError, match=r"^cannot determine how many examples the batch has: nothing has a length.$"):
        weigh(None, lambda batch: examples(batch))  # the user's weight: there is no better advice


class Machine(RunnerItem):
    computes_gradients = True


class Updater(ParameterUpdater):
    def __init__(self):
        super().__init__(None)


def test_updaters_around_and_machines_inside_at_every_depth():
    item, outer, inner, machine, other = Parts(), Updater(), Updater(), Machine(), Machine()
    runner = Runner(Batches(1), outer, Runner(inner, item, Runner(machine)), other)
    assert updaters_around(item, runner) == [outer, inner]
    assert machines_inside(item, runner) == [machine]


def test_the_place_is_judged_by_the_innermost_updater():
    item, machine, other = Parts(), Machine(), Machine()
    check_inside_updater(item, Runner(Batches(1), Updater(), Runner(Updater(), item, machine), other))
    with pytest.raises(CompositionError, match="is inside updater and not outside machine-2"):
        check_inside_updater(item, Runner(Batches(1), Updater(), Runner(item, machine), other))
    with pytest.raises(CompositionError, match="is outside any ParameterUpdater"):
        check_inside_updater(item, Runner(Batches(1), item, Updater(), machine))


@pytest.fixture
def network():
    return toy_network()


def backward(network, seed):
    examples = toy_examples(4, seed=seed)
    batch = {name: paddle.to_tensor(np.stack([each[name] for each in examples])) for name in ("x", "y")}
    network.loss(network(batch), batch).backward()


def gradients(network):
    return [None if each.grad is None else each.grad.numpy().tolist() for each in network.parameters()]


def test_no_optimizer_moves_what_was_taken_back(network):
    optimizer = paddle.optimizer.AdamW(0.1, parameters=network.parameters(), weight_decay=0.5)
    backward(network, 0)
    optimizer.step()
    optimizer.clear_grad(set_to_zero=False)
    before = bits(network)
    attempt = GradientRollback(network)
    backward(network, 1)
    attempt.take_back()
    assert gradients(network) == [None, None], "none, and not zeros, by which momentum and weight decay would move"
    optimizer.step()
    assert bits(network) == before


@pytest.mark.parametrize("there", [False, True], ids=["none before", "some before"])
def test_gradients_of_before_are_set_aside_and_added_again(there, network):
    if there:
        backward(network, 0)
    earlier = gradients(network)
    attempt = GradientRollback(network)
    assert gradients(network) == [None, None]
    backward(network, 1)
    later = gradients(network)
    attempt.keep()
    sums = [np.add(a, b, dtype="float32").tolist() for a, b in zip(earlier, later, strict=True)] if there else later
    assert gradients(network) == sums


def test_they_survive_attempts_that_are_taken_back_and_add_up_with_further_ones(network):
    backward(network, 0)
    earlier = gradients(network)
    attempt = GradientRollback(network)
    for seed in (1, 2):
        backward(network, seed)
        attempt.take_back()
    attempt.keep()
    assert gradients(network) == earlier
    backward(network, 0)
    assert gradients(network) == [np.multiply(each, 2).tolist() for each in earlier]


def test_buffers_are_restored(network):
    network.register_buffer("mean", paddle.ones([2]))
    attempt = GradientRollback(network)
    for value in (5.0, float("nan")):
        network.mean.set_value(paddle.full([2], value))
        attempt.take_back()
        assert network.mean.tolist() == [1, 1]
