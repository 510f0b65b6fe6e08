"""Accumulate: several batches for one update, with the gradient of the one big batch."""

from operator import length_hint

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion import (
    Accumulate,
    CompositionError,
    DataProvider,
    Evaluator,
    Every,
    GradientMachine,
    HookError,
    NanGuard,
    Observer,
    Repeat,
    Runner,
    RunnerItem,
    Saver,
    SplitOnMemoryError,
    TaskData,
    TaskSampler,
)
from onion.multitask.strategies import RoundRobin
from onion.testing import Batches, Failing, PlannedError, assert_resumes_exactly, toy_examples, toy_network
from tests.abilities import needs_draws_again
from tests.items.learning import Mse, assert_refused, check_close, examples, learning, updater
from tests.rings import Retry, Watch
from tests.toys import Dropped


def adamw():
    schedule, clip = paddle.optimizer.lr.StepDecay(0.05, 2), paddle.nn.ClipGradByGlobalNorm(0.5)
    return {"optimizer": "AdamW", "rate": schedule, "weight_decay": 0.1, "grad_clip": clip}


def trained(data, *rings, network=None, passes=1, **settings):
    """Return the network after training, the state, and the loss after each update."""
    network = network or toy_network()
    losses = Watch(lambda state: float(state.loss), "on_batch_end")
    state = Runner(losses, data, *learning(network, *rings, **settings)).run(passes=passes)
    return network, state, losses.seen


# -- the gradient ------------------------------------------------------------------------------------------------------


@given(k=st.integers(1, 6), size=st.integers(1, 5), data=st.data())
@settings(max_examples=25)
def test_one_update_of_k_batches_is_that_of_the_one_big_batch_also_a_ragged_one(k, size, data):
    count = data.draw(st.integers(1, k * size))
    accumulated, state, losses = trained(examples(count, size), Accumulate(k))
    big, _, loss = trained(examples(count, k * size))
    check_close(accumulated, big, rtol=0, atol=1e-6)
    assert losses == pytest.approx(loss, rel=1e-6)
    assert state.step == 1
    assert len(state.outputs) == len(state.batch["y"]) == count - (count - 1) // size * size, "those of the last batch"


@pytest.mark.parametrize("settings_of", [dict, adamw])
@pytest.mark.parametrize("count", [24, 23, 19, 13])
def test_whole_runs_agree_with_big_batches_over_ends_of_passes(count, settings_of):
    accumulated, state, losses = trained(examples(count, 4), Accumulate(3), passes=3, **settings_of())
    big, big_state, big_losses = trained(examples(count, 12), passes=3, **settings_of())
    check_close(accumulated, big, rtol=0, atol=2e-6)
    assert losses == pytest.approx(big_losses, rel=1e-5)
    assert (state.step, state.pass_id) == (big_state.step, big_state.pass_id)


class OfTokens(paddle.nn.Layer):
    """Its loss is a mean over tokens: those with a label."""

    def __init__(self):
        super().__init__()
        self.body = toy_network().linear

    def forward(self, batch):
        return self.body(batch["x"])[:, :, 0]

    def loss(self, outputs, batch):
        labelled = (batch["labels"] >= 0).astype("float32")
        return ((outputs - batch["labels"]) ** 2 * labelled).sum() / labelled.sum()


def token_batches(counts):
    random = np.random.default_rng(0)
    labels = np.full((len(counts), 2, 4), -1, "float32")
    for each, tokens in zip(labels, counts, strict=True):
        each.reshape(-1)[:tokens] = random.random(tokens)
    return [{"x": random.normal(size=(2, 4, 8)).astype("float32"), "labels": each} for each in labels]


def of_tokens(batches, *rings):
    network, state, _ = trained(Batches(batches), *rings, network=OfTokens())
    return network, float(state.loss)


@pytest.mark.parametrize("counts", [[8, 1, 3], [2, 2, 2], [5, 7], [1, 0, 4], [0, 6, 0]])
def test_a_loss_over_tokens_is_weighted_by_tokens(counts):
    batches = token_batches(counts)
    whole = {name: np.concatenate([batch[name] for batch in batches]) for name in ("x", "labels")}
    group = Accumulate(len(counts), weight=lambda batch: (batch["labels"] >= 0).sum())
    accumulated, loss = of_tokens(batches, group)
    big, big_loss = of_tokens([whole])
    check_close(accumulated, big, rtol=0, atol=1e-6)
    assert loss == pytest.approx(big_loss, rel=1e-6)


# -- what is counted and seen ------------------------------------------------------------------------------------------


def groups(k, count, passes=1, outside=(), inside=()):
    """Return the state, and the numbers of the batches in each group, by the step they made."""
    seen = {}
    note = Observer(on_batch_begin=lambda state: seen.setdefault(state.next_step, []).append(state.batch["y"].item()))
    batches = [{"x": np.ones((1, 8), "float32"), "y": np.full((1, 1), i, "float32")} for i in range(count)]
    parts = learning(toy_network(), Accumulate(k), note, *inside)
    state = Runner(Batches(batches), *outside, *parts).run(passes=passes)
    return list(seen.values()), state


def test_groups_end_with_the_pass():
    seen, state = groups(3, 5, passes=2)
    assert seen == [[0, 1, 2], [3, 4]] * 2
    assert (state.step, state.share) == (4, 1.0)


@pytest.mark.parametrize(
    ("source", "expected"), [(toy_examples(20), [3, 1, 0]), (lambda: iter(toy_examples(20)), [-1] * 3)]
)
def test_the_batches_left_are_known_unless_the_data_is_a_stream(source, expected):
    left = Watch(lambda state: length_hint(state.batches, -1), "on_batch_end")
    Runner(left, DataProvider(source, 4, prefetch=0), *learning(toy_network(), Accumulate(2))).run(passes=1)
    assert left.seen == expected


def test_a_loss_is_not_read():
    class Loss:
        def __mul__(self, share):
            return self

        __add__ = __mul__

    class Machine(RunnerItem):
        computes_gradients = True

        def on_batch(self, state):
            state.loss = Loss()

    state = Runner(Batches([np.zeros(2)] * 3), updater(toy_network()), Accumulate(3), Machine()).run(passes=1)
    assert isinstance(state.loss, Loss)


def test_each_batch_of_a_group_keeps_its_task():
    tasks = Watch(lambda state: state.task)
    data = {name: TaskData(examples(2, 1)) for name in "ab"}
    trained(TaskSampler(data, RoundRobin()), Accumulate(3), tasks)
    assert tasks.seen == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("outside", "inside", "expected"),
    [
        pytest.param([Repeat(3)], [], [[0, 1] * 3, [2, 3] * 3, [4] * 3], id="repeated"),
        pytest.param([Retry()], [Failing("on_batch", step=1, times=1)], [[0, 1, 0, 1], [2, 3], [4]], id="tried again"),
    ],
)
def test_from_outside_it_is_the_same_group_again(outside, inside, expected):
    seen, state = groups(2, 5, outside=outside, inside=inside)
    assert (seen, state.step) == (expected, 3)


def test_a_second_run_starts_with_the_first_batch_though_the_first_failed_in_a_group():
    sizes = Watch(lambda state: len(state.batch["y"]))
    rings = Accumulate(2), sizes, Failing("on_batch", step=0, times=1)
    runner = Runner(examples(7), *learning(toy_network(), *rings))
    with pytest.raises(PlannedError):
        runner.run(passes=1)
    assert runner.run(passes=1).step == 1
    assert sizes.seen == [4, 4, 3]


class Small(Dropped):
    """A network that draws random numbers and has room for three examples only."""

    def forward(self, batch):
        if len(batch["y"]) > 3:
            raise MemoryError
        return super().forward(batch)


@pytest.mark.slow
@needs_draws_again
def test_with_all_the_others_a_run_resumes_exactly(tmp_path):
    """Several tasks, in groups, in pieces, guarded; the third batch of the first task is not a number."""

    def onion(folder):
        paddle.seed(3)
        network = Small()
        data = [dict(each) for each in toy_examples(20)]
        data[9]["y"] = data[9]["y"] * np.float32("nan")
        tasks = TaskSampler({name: TaskData(DataProvider(data, 4, prefetch=0)) for name in ("a", "b")})
        rings = NanGuard("rollback", snapshot_every=2), Accumulate(3), SplitOnMemoryError(network)
        return Runner(Saver(folder, every=1), tasks, *learning(network, *rings, **adamw()))

    runner = onion(tmp_path / "whole")
    runner.run(passes=2)
    assert runner[NanGuard].log_values()["not_finite"] >= 2
    assert runner[SplitOnMemoryError].log_values() == {"piece_size": 2}
    assert_resumes_exactly(onion, tmp_path / "cut", passes=2, cuts=[2, 5])


# -- its place ---------------------------------------------------------------------------------------------------------


def test_a_wrong_place_is_refused_with_the_drawing():
    outer, machine = learning(toy_network())
    said = "accumulate is outside any ParameterUpdater; move it into one"
    assert_refused(said, Accumulate(2), outer, machine)
    said = "inside parameter_updater and not outside gradient_machine; move it between the two"
    assert_refused(said, outer, machine, Accumulate(2))
    second = GradientMachine(machine.network)
    assert_refused(said, outer, machine, Accumulate(2), second)
    Runner(examples(), Runner(outer, Accumulate(2), machine, second))

    said = "would see the last batch of every 8 only; move it inside"
    assert_refused(said, Evaluator(Mse()), outer, Accumulate(8), machine)
    Runner(examples(), outer, Accumulate(8), Evaluator(Mse()), machine)

    assert_refused("accumulate-2 is inside accumulate, which makes", outer, Accumulate(2), Accumulate(3), machine)
    splitter = SplitOnMemoryError(machine.network)
    said = "accumulate is inside split_on_memory_error.*swap"
    assert_refused(said, outer, splitter, Accumulate(3), machine)


def test_what_alters_batches_belongs_inside_and_is_refused_at_the_first_batch_outside():
    def alter(state):
        state.batch = dict(state.batch)

    outer, machine = learning(toy_network())
    altering = Observer(on_batch_begin=alter)
    with pytest.raises(HookError, match="replaced the batch from the data"):
        Runner(examples(), altering, outer, Accumulate(2), machine).run(passes=1)
    Runner(examples(), outer, Accumulate(2), altering, machine).run(passes=1)


@pytest.mark.parametrize("k", [0, -2, True, 2.0, "2", None])
def test_a_wrong_number_of_batches_is_refused(k):
    with pytest.raises(CompositionError, match="must be an integer >= 1"):
        Accumulate(k)


def test_a_runner_that_accumulates_may_be_in_an_every():
    state = Runner(examples(24), Every(2, Runner(*learning(toy_network(), Accumulate(2))))).run(passes=1)
    assert state.step == 4  # batches 1, 2 and 3, 4 and 5, 6: of the steps 1 to 4 the 2nd and the 4th take two
