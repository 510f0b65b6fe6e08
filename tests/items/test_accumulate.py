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
    DataError,
    DataProvider,
    Evaluator,
    Every,
    GradientMachine,
    HookError,
    NanGuard,
    Observer,
    ParameterUpdater,
    Repeat,
    Runner,
    RunnerItem,
    Saver,
    SplitOnMemoryError,
    TaskData,
    TaskSampler,
)
from onion.testing import Batches, Failing, PlannedError, Recorder, toy_examples, toy_network
from tests.abilities import needs_draws_again


def sgd(network):
    return paddle.optimizer.SGD(1.0, parameters=network.parameters())


def adamw(network):
    schedule = paddle.optimizer.lr.StepDecay(0.05, 2)
    clip = paddle.nn.ClipGradByGlobalNorm(0.5)
    return paddle.optimizer.AdamW(schedule, parameters=network.parameters(), weight_decay=0.1, grad_clip=clip)


def trained(batch_size, *rings, count=24, optimizer_of=sgd, passes=1, network=None):
    """Return the parameters after training, the state, and the loss after each update."""
    network = network or toy_network()
    losses = []
    state = Runner(
        Observer(on_batch_end=lambda state: losses.append(float(state.loss))),
        DataProvider(toy_examples(count), batch_size, prefetch=0),
        ParameterUpdater(optimizer_of(network)),
        *rings,
        GradientMachine(network),
    ).run(passes=passes)
    return [each.numpy() for each in network.parameters()], state, losses


def check_close(one, other, within=1e-6):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=within)


# -- the gradient ------------------------------------------------------------------------------------------------------


@given(k=st.integers(1, 6), size=st.integers(1, 5), data=st.data())
@settings(max_examples=25)
def test_one_update_of_k_batches_is_that_of_the_one_big_batch_also_a_ragged_one(k, size, data):
    count = data.draw(st.integers(1, k * size))
    many, state, losses = trained(size, Accumulate(k), count=count)
    one, _, whole = trained(k * size, count=count)
    check_close(many, one)
    assert losses == pytest.approx(whole, rel=1e-6)
    assert state.step == 1


@pytest.mark.parametrize("optimizer_of", [sgd, adamw])
@pytest.mark.parametrize("count", [24, 23, 19, 13])
def test_whole_runs_agree_with_big_batches_over_ends_of_passes(count, optimizer_of):
    def slow(network):
        optimizer = optimizer_of(network)
        return paddle.optimizer.SGD(0.05, parameters=network.parameters()) if optimizer_of is sgd else optimizer

    many, state, losses = trained(4, Accumulate(3), count=count, optimizer_of=slow, passes=3)
    one, whole_state, whole = trained(12, count=count, optimizer_of=slow, passes=3)
    check_close(many, one, 2e-6)
    assert losses == pytest.approx(whole, rel=1e-5)
    assert (state.step, state.pass_id) == (whole_state.step, whole_state.pass_id)


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
    batches = []
    for tokens in counts:
        labels = np.full((2, 4), -1, "float32")
        labels.reshape(-1)[:tokens] = random.random(tokens)
        batches.append({"x": random.normal(size=(2, 4, 8)).astype("float32"), "labels": labels})
    return batches


def of_tokens(batches, *rings):
    network = OfTokens()
    state = Runner(Batches(batches), ParameterUpdater(sgd(network)), *rings, GradientMachine(network)).run(passes=1)
    return [each.numpy() for each in network.parameters()], float(state.loss)


def tokens(batch):
    return (batch["labels"] >= 0).sum()


@pytest.mark.parametrize("counts", [[8, 1, 3], [2, 2, 2], [5, 7], [1, 0, 4], [0, 6, 0]])
def test_a_loss_over_tokens_is_weighted_by_tokens(counts):
    batches = token_batches(counts)
    whole = {name: np.concatenate([batch[name] for batch in batches]) for name in ("x", "labels")}
    many, loss = of_tokens(batches, Accumulate(len(counts), weight=tokens))
    one, whole_loss = of_tokens([whole])
    check_close(many, one)
    assert loss == pytest.approx(whole_loss, rel=1e-6)


def test_the_number_of_examples_would_be_the_wrong_weight_there():
    batches = token_batches([8, 1])
    by_tokens, _ = of_tokens(batches, Accumulate(2, weight=tokens))
    by_examples, _ = of_tokens(batches, Accumulate(2))
    assert np.abs(by_tokens[0] - by_examples[0]).max() > 1e-3


def test_a_group_that_weighs_nothing_moves_nothing_and_does_not_count():
    network = OfTokens()
    before = network.body.weight.numpy().copy()
    runner = Runner(
        Batches(token_batches([0, 0])), ParameterUpdater(sgd(network)), Accumulate(2, tokens), GradientMachine(network)
    )
    assert runner.run(passes=1).step == 0
    assert (network.body.weight.numpy() == before).all()


def test_inside_an_item_that_shares_the_shares_multiply():
    seen = []
    note = Observer(on_batch_begin=lambda state: seen.append(state.share))
    network = toy_network()

    class Half(RunnerItem):
        def on_batch(self, state):
            state.share = 0.5
            yield
            seen.append(state.share)

    source = DataProvider(toy_examples(8), 4)
    Runner(source, ParameterUpdater(sgd(network)), Half(), Accumulate(2), note, GradientMachine(network)).run(passes=1)
    assert seen == [0.25, 0.25, 0.5]


# -- what is counted and seen ------------------------------------------------------------------------------------------


def groups(k, batches, passes=1, outside=(), inside=()):
    """Return the batches of each group, by the step they made."""
    seen = {}
    note = Observer(on_batch_begin=lambda state: seen.setdefault(state.next_step, []).append(state.batch["y"].item()))
    network = toy_network()
    source = [{"x": np.ones((1, 8), "float32"), "y": np.full((1, 1), i, "float32")} for i in range(batches)]
    state = Runner(
        Batches(source),
        *outside,
        ParameterUpdater(paddle.optimizer.SGD(0.001, parameters=network.parameters())),
        Accumulate(k),
        note,
        *inside,
        GradientMachine(network),
    ).run(passes=passes)
    return list(seen.values()), state


def test_groups_end_with_the_pass():
    seen, state = groups(3, 5, passes=2)
    assert seen == [[0, 1, 2], [3, 4], [0, 1, 2], [3, 4]]
    assert (state.step, state.share) == (4, 1.0)


def test_rings_outside_see_a_group_once_and_rings_inside_each_batch():
    outer, inner = Recorder("outer"), Recorder("inner")
    groups(4, 8, outside=[outer], inside=[inner])
    assert outer.trace.count("outer.on_batch:out") == 2
    assert inner.trace.count("inner.on_batch:out") == 8


def test_the_batches_left_are_told_truthfully():
    left = []
    note = Observer(on_batch_end=lambda state: left.append(length_hint(state.batches, -1)))
    network = toy_network()

    def onion(source):
        rings = ParameterUpdater(sgd(network)), Accumulate(2), GradientMachine(network)
        return Runner(note, DataProvider(source, 4, prefetch=0), *rings)

    onion(toy_examples(20)).run(passes=1)
    assert left == [3, 1, 0]
    left.clear()
    onion(lambda: iter(toy_examples(20))).run(passes=1)
    assert left == [-1, -1, -1], "a stream does not know"


def test_outputs_and_batch_are_those_of_the_last():
    network = toy_network()
    rings = ParameterUpdater(sgd(network)), Accumulate(2), GradientMachine(network)
    state = Runner(DataProvider(toy_examples(7), 4), *rings).run(passes=1)
    assert len(state.outputs) == len(state.batch["y"]) == 3


def test_a_loss_is_not_read():
    class Cost:
        def __mul__(self, share):
            return self

        __add__ = __mul__

        def __float__(self):
            raise AssertionError("somebody read it")

    class Machine(RunnerItem):
        computes_gradients = True

        def on_batch(self, state):
            state.loss = Cost()

    network = toy_network()
    state = Runner(Batches([np.zeros(2)] * 3), ParameterUpdater(sgd(network)), Accumulate(3), Machine()).run(passes=1)
    assert isinstance(state.loss, Cost)


def test_each_batch_of_a_group_keeps_its_task():
    class Sampler(RunnerItem):
        def on_pass(self, state):
            def draw():
                for task, example in zip("aba", toy_examples(3), strict=True):
                    state.task = task
                    yield {name: value[None] for name, value in example.items()}

            state.batches = draw()

    tasks = []
    network = toy_network()
    note = Observer(on_batch_begin=lambda state: tasks.append(state.task))
    Runner(Sampler(), ParameterUpdater(sgd(network)), Accumulate(3), note, GradientMachine(network)).run(passes=1)
    assert tasks == ["a", "b", "a"]


def test_repeated_from_outside_it_is_the_same_group_again():
    seen, state = groups(2, 4, outside=[Repeat(3)])
    assert seen == [[0, 1] * 3, [2, 3] * 3]
    assert state.step == 2


def test_tried_again_from_outside_it_is_the_same_group_again():
    class Patience(RunnerItem):
        def on_batch(self, state):
            try:
                yield
                return
            except PlannedError:
                pass
            yield

    seen, state = groups(2, 5, outside=[Patience()], inside=[Failing("on_batch", step=1, times=1)])
    assert seen == [[0, 1, 0, 1], [2, 3], [4]]
    assert state.step == 3


def test_a_second_run_begins_anew_though_the_first_failed_in_a_group():
    failing = Failing("on_batch", step=0, times=1)
    network = toy_network()
    seen = []
    note = Observer(on_batch_begin=lambda state: seen.append(len(state.batch["y"])))
    rings = ParameterUpdater(sgd(network)), Accumulate(2), note, failing, GradientMachine(network)
    runner = Runner(DataProvider(toy_examples(7), 4), *rings)
    with pytest.raises(PlannedError):
        runner.run(passes=1)
    assert runner.run(passes=1).step == 1
    assert seen == [4, 4, 3]


# -- going on ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_run_cut_after_any_update_goes_on_to_the_same_bits(cut, tmp_path):
    def onion(folder, seed=0):
        network = toy_network(seed=seed)
        return Runner(
            Saver(tmp_path / folder, every=2),
            DataProvider(toy_examples(22), 4, shuffle=True, prefetch=0),
            ParameterUpdater(adamw(network)),
            Accumulate(2),
            GradientMachine(network),
        )

    def outcome(runner, state):
        items = runner[ParameterUpdater].state_dict() | runner[GradientMachine].state_dict()
        bits = {key: value if isinstance(value, str) else value.numpy().tobytes() for key, value in items.items()}
        return bits, runner[DataProvider].state_dict(), (state.step, state.pass_id, float(state.loss))

    uncut = onion("uncut")
    expected = outcome(uncut, uncut.run(passes=2))
    onion("cut").run(passes=2, steps=cut)
    resumed = onion("cut", seed=1)
    assert outcome(resumed, resumed.run(passes=2)) == expected


class TwoHeads(paddle.nn.Layer):
    """A head a task, some dropout, and room for three examples only."""

    def __init__(self, seed=0):
        super().__init__()
        self.heads = paddle.nn.LayerDict({"a": toy_network(seed=seed), "b": toy_network(seed=seed + 1)})
        self.tasks = ("a", "b")

    def forward(self, batch):
        if len(batch["y"]) > 3:
            raise MemoryError
        return self.heads[batch["task"]]({"x": paddle.nn.functional.dropout(batch["x"], 0.2)})

    def loss(self, outputs, batch):
        return self.heads["a"].loss(outputs, batch)


def everything(folder, seed=0):
    """Several tasks, in groups, in pieces, guarded; the third batch of the first task is not a number."""
    paddle.seed(3)
    network = TwoHeads(seed)
    examples = [dict(each) for each in toy_examples(20)]
    examples[9]["y"] = examples[9]["y"] * np.float32("nan")
    tasks = {name: TaskData(DataProvider(examples, 4, prefetch=0)) for name in ("a", "b")}
    return Runner(
        Saver(folder, every=1),
        TaskSampler(tasks),
        ParameterUpdater(adamw(network)),
        NanGuard("rollback", snapshot_every=2),
        Accumulate(3),
        SplitOnMemoryError(network),
        GradientMachine(network),
    )


@needs_draws_again
@pytest.mark.parametrize("cut", range(1, 7))
def test_with_all_the_others_a_run_that_was_cut_goes_on_to_the_same_bits(cut, tmp_path):
    def outcome(runner, state):
        items = {item.name: item.state_dict() for item in runner.walk() if item.name != "saver"}
        bits = {
            (name, key): value.numpy().tobytes() if hasattr(value, "numpy") else np.asarray(value).tobytes()
            for name, saved in items.items()
            for key, value in saved.items()
        }
        return bits, (state.step, state.pass_id)

    uncut = everything(tmp_path / "uncut")
    expected = outcome(uncut, uncut.run(passes=2))
    assert uncut[NanGuard].log_values()["not_finite"] >= 2
    assert uncut[SplitOnMemoryError].log_values() == {"piece_size": 2}
    everything(tmp_path / "cut").run(passes=2, steps=cut)
    resumed = everything(tmp_path / "cut", seed=5)
    assert outcome(resumed, resumed.run(passes=2)) == expected


# -- where it may stand ------------------------------------------------------------------------------------------------


def refused(*items, match):
    with pytest.raises(CompositionError, match=match) as caught:
        Runner(DataProvider(toy_examples()), *items)
    assert "data_provider" in str(caught.value), "the drawing"


def parts():
    network = toy_network()
    return ParameterUpdater(sgd(network)), GradientMachine(network)


def test_it_stands_between_the_updater_and_all_its_machines():
    updater, machine = parts()
    refused(Accumulate(2), updater, machine, match="accumulate is outside any ParameterUpdater; move it into one")
    refused(updater, machine, Accumulate(2), match="inside parameter_updater and not outside gradient_machine")
    second = GradientMachine(machine.network)
    refused(updater, machine, Accumulate(2), second, match="not outside gradient_machine; move it between the two")
    Runner(DataProvider(toy_examples()), Runner(updater, Accumulate(2), machine, second))


def test_an_evaluator_outside_would_see_one_batch_in_k():
    updater, machine = parts()
    evaluator = Evaluator(None)
    refused(
        evaluator, updater, Accumulate(8), machine, match="would see the last batch of every 8 only; move it inside"
    )
    Runner(DataProvider(toy_examples()), updater, Accumulate(8), evaluator, machine)


def test_two_that_share_an_update_are_refused():
    updater, machine = parts()
    refused(updater, Accumulate(2), Accumulate(3), machine, match="accumulate-2 is inside accumulate, which makes")
    splitter = SplitOnMemoryError(machine.network)
    refused(updater, splitter, Accumulate(3), machine, match="accumulate is inside split_on_memory_error.*swap")


def test_what_alters_batches_belongs_inside_and_is_refused_at_the_first_batch_outside():
    def alter(state):
        state.batch = dict(state.batch)

    updater, machine = parts()
    altering = Observer(on_batch_begin=alter)
    runner = Runner(DataProvider(toy_examples()), altering, updater, Accumulate(2), machine)
    with pytest.raises(HookError, match="replaced the batch from the data"):
        runner.run(passes=1)
    Runner(DataProvider(toy_examples()), updater, Accumulate(2), altering, machine).run(passes=1)


def test_a_batch_that_does_not_tell_its_weight_asks_for_a_function():
    updater, machine = parts()
    packed = [{"ids": np.zeros(7), "x": np.zeros([2, 8], "float32"), "y": np.zeros([2, 1], "float32")}] * 2
    with pytest.raises(DataError, match=r"\['ids'\] has 7, \['x'\] has 2.* Give weight=, a function of the batch"):
        Runner(Batches(packed), updater, Accumulate(2), machine).run(passes=1)
    Runner(Batches(packed), updater, Accumulate(2, lambda batch: len(batch["x"])), machine).run(passes=1)


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf")])
def test_a_weight_that_makes_no_sense_is_refused(weight):
    updater, machine = parts()
    with pytest.raises(DataError, match="a weight must be >= 0"):
        Runner(DataProvider(toy_examples()), updater, Accumulate(2, lambda batch: weight), machine).run(passes=1)


@pytest.mark.parametrize("k", [0, -2, True, 2.0, "2", None])
def test_what_is_no_number_of_batches_is_refused(k):
    with pytest.raises(CompositionError, match="must be an integer >= 1"):
        Accumulate(k)


def test_it_is_drawn():
    updater, machine = parts()
    assert "Accumulate(k=8)" in str(Runner(DataProvider(toy_examples()), updater, Accumulate(8), machine))


def test_a_whole_onion_that_accumulates_may_stand_in_an_every():
    updater, machine = parts()
    state = Runner(DataProvider(toy_examples(24), 4), Every(2, Runner(updater, Accumulate(2), machine))).run(passes=1)
    assert state.step == 4  # batches 1, 2 and 3, 4 and 5, 6: of the steps 1 to 4 the 2nd and the 4th take two
