"""What Accumulate and SplitOnMemoryError do alike (more of it in their own tests)."""

import numpy as np
import pytest

from onion import CompositionError, ParameterUpdater, Runner, RunnerItem, SkipIf
from onion.data.batch_parts import examples
from onion.errors import DataError
from onion.testing import Batches, Failing, PlannedError
from onion.training.microbatches import insist_on_place, machines_inside, run_microbatches, updaters_around, weigh


class Parts(RunnerItem):
    """Run the inside for each number of a batch, which weighs what it is."""

    def on_batch(self, state):
        yield from run_microbatches(state, [(f"task {number}", number) for number in state.batch], float)


class Costs(RunnerItem):
    """Note what is seen, and loss ten times the batch."""

    def __init__(self):
        self.seen = []

    def on_batch(self, state):
        self.seen.append((state.task, state.batch, state.share))
        state.loss = 10.0 * state.batch


def test_each_part_has_its_task_and_its_share():
    losses = Costs()
    Runner(Batches([[1, 3]]), Parts(), losses).run(passes=1)
    assert losses.seen == [("task 1", 1, 0.25), ("task 3", 3, 0.75)]


def test_the_loss_is_the_weighted_mean_and_the_share_is_as_before():
    state = Runner(Batches([[1, 3]]), Parts(), Costs()).run(passes=1)
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


def test_an_error_of_ones_own_weight_is_left_as_it_is():
    def weight(batch):
        raise DataError("mine")

    with pytest.raises(DataError, match=r"^mine$"):
        weigh(None, weight)


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
    insist_on_place(item, Runner(Batches(1), Updater(), Runner(Updater(), item, machine), other))
    with pytest.raises(CompositionError, match="is inside updater and not outside machine-2"):
        insist_on_place(item, Runner(Batches(1), Updater(), Runner(item, machine), other))
    with pytest.raises(CompositionError, match="is outside any ParameterUpdater"):
        insist_on_place(item, Runner(Batches(1), item, Updater(), machine))
