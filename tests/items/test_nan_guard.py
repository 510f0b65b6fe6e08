"""NanGuard: no update is made of what is not a number."""

import numpy as np
import paddle
import pytest

from onion import (
    Accumulate,
    CompositionError,
    GradientMachine,
    NanGuard,
    Observer,
    OnionError,
    ParameterUpdater,
    Repeat,
    Runner,
    RunnerItem,
    SkipIf,
    SplitOnMemoryError,
    TaskData,
    TaskSampler,
    schedules,
)
from onion.multitask.strategies import RoundRobin
from onion.testing import Batches, toy_examples, toy_network
from tests.abilities import known
from tests.items.learning import OPTIMIZERS, Wrapped, examples, learning, plain, updater
from tests.rings import at
from tests.toys import bits as bits_of

lr = paddle.optimizer.lr
KINDS = ("sgd", "momentum", "adamw", "adamw clipped", "amsgrad", "lamb", "rmsprop", "asgd", "nadam")
KNOWN = known({name: OPTIMIZERS[name] for name in KINDS})


class Running(Wrapped):
    """A network with a running mean, which a batch of NaN would spoil."""

    def __init__(self, seed=0):
        super().__init__(seed)
        self.register_buffer("mean", paddle.zeros([8]))

    def forward(self, batch):
        self.mean.set_value(0.9 * self.mean + 0.1 * batch["x"].mean(axis=0))
        return super().forward({"x": batch["x"] - self.mean})


def batches(count, bad=(), value=np.nan):
    """Return batches, of which the bad ones have a NaN or an infinity in them."""
    examples = toy_examples(4 * count)
    made = []
    for i in range(count):
        x, y = (np.stack([each[name] for each in examples[4 * i : 4 * i + 4]]) for name in ("x", "y"))
        if i in bad:
            x[1, 2] = value
        made.append({"x": x, "y": y})
    return made


def onion(data, *guard, network=None, optimizer="adamw", outside=()):
    network = network or Running()
    mover = ParameterUpdater(OPTIMIZERS[optimizer](network.parameters()))
    return Runner(*outside, Batches(data), mover, *guard, GradientMachine(network))


def bits(runner):
    return plain(runner[GradientMachine].state_dict() | runner[ParameterUpdater].state_dict())


def check_same(one, other, passes=1):
    """Run both; their networks and optimizers come to the same. Return the state of the first."""
    state = one.run(passes=passes)
    other.run(passes=passes)
    assert bits(one) == bits(other)
    return state


def not_finite(runner):
    return runner[NanGuard].log_values()["not_finite"]


def scheduled(schedule, bad, *guard, count=4, optimizer="AdamW"):
    """Run a network with a schedule over batches of which some are bad."""
    mover, machine = learning(toy_network(), optimizer=optimizer, rate=schedule)
    Runner(Batches(batches(count, bad)), mover, *guard, machine).run(passes=1)


def good(data, bad):
    return [batch for i, batch in enumerate(data) if i not in bad]


# -- finite losses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("policy", ["raise", "skip", "rollback"])
@pytest.mark.parametrize("optimizer", KNOWN)
def test_a_healthy_run_is_the_same_to_the_bit(optimizer, policy, gradients):
    guarded = onion(batches(5), NanGuard(policy, check_gradients=gradients, snapshot_every=2), optimizer=optimizer)
    check_same(guarded, onion(batches(5), optimizer=optimizer), passes=2)
    assert not_finite(guarded) == 0


# -- raise -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "loss"), [(np.nan, "nan"), (np.inf, "nan|inf"), (1e30, "inf")])
def test_an_error_tells_step_and_loss_and_no_update_is_made(value, loss):
    broken, healthy = onion(batches(5, bad=[3], value=value), NanGuard()), onion(batches(5))
    said = rf"^nan_guard: step 4 has the loss ({loss}); a smaller learning rate, warm-up or clipping may help\.$"
    with pytest.raises(OnionError, match=said):
        broken.run(passes=1)
    healthy.run(steps=3)
    one, other = (runner[GradientMachine].network.body for runner in (broken, healthy))
    assert bits_of(one)["linear.weight"] == bits_of(other)["linear.weight"]


# -- skip --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", KNOWN)
@pytest.mark.parametrize("bad", [{0}, {2}, {1, 2}, {4}, {0, 1, 2, 3, 4}])
def test_a_skipped_batch_leaves_network_and_optimizer_as_if_it_had_not_been(bad, optimizer):
    data = batches(5, bad)
    guarded = onion(data, NanGuard("skip"), optimizer=optimizer)
    state = check_same(guarded, onion(good(data, bad), optimizer=optimizer), passes=2)
    assert not_finite(guarded) == 2 * len(bad)
    assert state.step == 10, "it was run, and counts"


@pytest.mark.parametrize(("policy", "optimizer"), [("skip", "SGD"), ("rollback", "AdamW")])
def test_the_schedule_follows_the_step(policy, optimizer):
    schedule = lr.StepDecay(1.0, 1, gamma=0.5)
    scheduled(schedule, {1, 2}, NanGuard(policy), optimizer=optimizer)
    assert schedule.get_lr() == 0.5**4


def test_the_log_tells_the_step_and_the_loss_stays_for_others_to_show(caplog):
    losses = []
    note = Observer(on_batch_end=lambda state: losses.append(float(state.loss)))
    onion(batches(3, {1}), NanGuard("skip"), outside=[note]).run(passes=1)
    assert caplog.messages == ["nan_guard: step 2 has the loss nan; skipped the update"]
    assert [np.isnan(loss) for loss in losses] == [False, True, False]


class Steep(Wrapped):
    """A network whose loss is finite while its gradient is not: the root at zero."""

    def loss(self, outputs, batch):
        return paddle.sqrt(outputs * outputs * batch["steep"]).mean() + super().loss(outputs, batch)


def steep_batches(count, bad):
    factors = [np.full((4, 1), 0.0 if i in bad else 1.0, "float32") for i in range(count)]
    return [{**batch, "steep": factor} for batch, factor in zip(batches(count), factors, strict=True)]


def test_gradients_are_looked_at_if_wanted():
    data = steep_batches(4, {2})
    guarded = onion(data, NanGuard("skip", check_gradients=True), network=Steep())
    check_same(guarded, onion(good(data, {2}), network=Steep()))
    assert not_finite(guarded) == 1
    with pytest.raises(OnionError, match=r"step 3 has gradients that are not finite, at the loss \d"):
        onion(data, NanGuard(check_gradients=True), network=Steep()).run(passes=1)
    blind = onion(data, NanGuard("skip"), network=Steep())
    blind.run(steps=3)
    assert not_finite(blind) == 0


@pytest.mark.parametrize("policy", ["raise", "skip", "rollback"])
def test_a_batch_that_is_skipped_inside_is_not_judged_by_the_loss_of_another(policy):
    losses = []
    note = Observer(on_batch_end=lambda state: losses.append(state.loss))
    skip = SkipIf(lambda state: state.batch_id in (0, 2))
    runner = onion(batches(4, {2}), NanGuard(policy), skip, outside=[note])
    assert runner.run(passes=1).step == 2
    assert not_finite(runner) == 0
    assert [loss is None for loss in losses] == [True, False, True, False]


def test_the_loss_of_another_machine_stays_where_the_inside_is_skipped():
    losses = []
    note = Observer(on_batch_end=lambda state: losses.append(state.loss))
    price = Observer(on_batch_begin=lambda state: setattr(state, "loss", 2.0))
    runner = onion(batches(2), NanGuard(), SkipIf(lambda state: True), outside=[note])
    runner.insert_after(Batches, price).run(passes=1)
    assert losses == [2.0, 2.0]


def test_outside_accumulate_the_whole_update_is_skipped():
    data = batches(6, {3})
    guarded = onion(data, NanGuard("skip"), Accumulate(2), network=toy_network())
    assert check_same(guarded, onion(data[:2] + data[4:], Accumulate(2), network=toy_network())).step == 3


# -- rollback ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", KNOWN)
@pytest.mark.parametrize(
    ("every", "bad", "kept"),
    [
        (1, {3}, [0, 1, 4]),  # the copy made before the update of step 3 knows batches 0 and 1
        (2, {3}, [0, 1, 4]),
        (3, {3}, [4]),
        (2, {1}, [2, 3, 4]),
        (100, {4}, []),
        (2, {2, 3}, [4]),
        (1, {0}, [1, 2, 3, 4]),
    ],
)
def test_it_goes_back_to_the_newest_copy_and_on_with_the_data(every, bad, kept, optimizer, caplog):
    data = batches(5, bad)
    guarded = onion(data, NanGuard("rollback", snapshot_every=every), network=toy_network(), optimizer=optimizer)
    never = onion([data[i] for i in kept], network=toy_network(), optimizer=optimizer)
    assert check_same(guarded, never).step == 5
    assert len(caplog.records) == len(bad)


def test_the_log_tells_where_it_went_back_to(caplog):
    onion(batches(6, {0, 4}), NanGuard("rollback", snapshot_every=2)).run(passes=1)
    assert caplog.messages == [
        "nan_guard: step 1 has the loss nan; skipped the update",
        "nan_guard: step 5 has the loss nan; rolled back to before step 4",
    ]


def test_running_means_go_back_too():
    data = batches(4, {3})
    guarded = onion(data, NanGuard("rollback", snapshot_every=2))
    guarded.run(passes=1)
    expected = Running()
    for batch in data[:3]:  # the copy was made when the batch of step 3 had been run, and before its update
        expected({"x": paddle.to_tensor(batch["x"])})
    assert guarded[GradientMachine].network.mean.numpy().tobytes() == expected.mean.numpy().tobytes()


def test_the_numbers_that_paddle_does_not_save_of_a_schedule_do_not_go_back_either():
    schedule = lr.CosineAnnealingWarmRestarts(0.1, T_0=20)
    scheduled(schedule, {4}, NanGuard("rollback", snapshot_every=3), count=6)
    assert (schedule.last_epoch, schedule.T_cur) == (6, 6)


@pytest.mark.parametrize("rate", [0.05, schedules.linear_warmup_and_decay(0.05, total_steps=20, warmup_ratio=0.0)])
def test_a_learning_rate_that_was_set_by_hand_does_not_go_back_either(rate):
    mover, machine = learning(toy_network(), optimizer="Momentum", rate=rate)
    rates = []

    def set_rate(state):
        if state.step in (1, 3):
            mover.set_learning_rate(0.05 / 10**state.step)
        rates.append(mover.rate)

    guard, watch = NanGuard("rollback", snapshot_every=2), Observer(on_batch_begin=set_rate)
    Runner(watch, Batches(batches(6, {3})), mover, guard, machine).run(passes=1)
    assert guard.log_values() == {"not_finite": 1}
    assert rates == [None, 0.005, 0.005, 0.00005, 0.00005, 0.00005]
    assert mover.state_dict()["learning_rate"] == 0.00005
    left = 1 if rate == 0.05 else 1 - 6 / 20
    assert mover.log_values()["learning_rate"] == pytest.approx(0.00005 * left)


def test_a_parameter_spoilt_by_an_update_is_made_whole_again():
    """The loss tells only in the batch after the update that spoilt the network."""
    network = toy_network()
    spoil = at(3, lambda: network.linear.weight.set_value(paddle.full([8, 1], np.nan)))
    guarded = onion(batches(6), NanGuard("rollback", snapshot_every=1), network=network, outside=[spoil])
    assert np.isfinite(float(guarded.run(passes=1).loss))
    assert np.isfinite(network.linear.weight.numpy()).all()
    assert not_finite(guarded) == 1


def test_a_second_run_knows_no_copy_of_the_first():
    guard, network = NanGuard("rollback"), toy_network()
    onion(batches(3), guard, network=network).run(passes=1)
    moved = bits_of(network)
    onion(batches(1, {0}), guard, network=network).run(passes=1)
    assert bits_of(network) == moved
    assert guard.log_values() == {"not_finite": 1}


# -- where it may stand ------------------------------------------------------------------------------------------------


def test_its_place_is_between_the_updater_and_all_its_machines_and_outside_what_shares():
    network = toy_network()
    mover, machine = learning(network)
    guard, second, split = NanGuard(), GradientMachine(network), SplitOnMemoryError(network)
    for items, said in [
        ([guard, mover, machine], "nan_guard is outside any ParameterUpdater; move it into one"),
        ([mover, machine, guard], "not outside gradient_machine; move it between the two"),
        ([mover, machine, guard, second], "not outside gradient_machine"),
        ([mover, Accumulate(2), guard, machine], "is inside accumulate, and would judge a part of an update"),
        ([mover, split, guard, machine], "is inside split_on_memory_error"),
    ]:
        with pytest.raises(CompositionError, match=said):
            Runner(Batches(1), *items)
    Runner(Batches(1), mover, guard, Accumulate(2), split, machine, second)


def test_two_machines_are_guarded_together():
    data = batches(4, {2})

    def two(data, *guard):
        networks = toy_network(), toy_network(seed=1)
        machines = map(GradientMachine, networks)
        mover = updater(*networks, optimizer="AdamW", weight_decay=0.1)
        Runner(Batches(data), mover, *guard, *machines).run(passes=1)
        return [bits_of(network) for network in networks]

    assert two(data, NanGuard("skip")) == two(good(data, {2}))
    assert two(data, NanGuard("rollback", snapshot_every=1)) == two([data[0], data[3]])


@pytest.mark.parametrize("spoilt", [0, 1], ids=["the first", "the second"])
def test_either_of_two_machines_is_guarded(spoilt):
    networks = toy_network(), toy_network(seed=1)

    def machine(number):
        """One whose loss in step 1 is not a number."""
        network, steps = networks[number], iter(range(4))
        bad = {1} if number == spoilt else set()
        return GradientMachine(network, lambda *given: network.loss(*given) * (np.nan if next(steps) in bad else 1.0))

    kept = []
    keep = Observer(on_batch_end=lambda state: kept.append([bits_of(network) for network in networks]))
    mover = updater(*networks, optimizer="AdamW", weight_decay=0.1)
    runner = Runner(Batches(batches(4)), keep, mover, NanGuard("skip"), machine(0), machine(1))
    runner.run(passes=1)
    assert kept[0] == kept[1] != kept[2]
    assert runner[NanGuard].log_values() == {"not_finite": 1}


def test_a_loss_of_any_repetition_is_guarded():
    network, losses = toy_network(), iter([1.0, np.nan, 1.0, 1.0, 1.0, 1.0])
    machine = GradientMachine(network, lambda *given: network.loss(*given) * next(losses))
    mover, before = updater(network), bits_of(network)
    Runner(Batches(batches(1)), mover, NanGuard("skip"), Repeat(3), machine).run(passes=1)
    assert bits_of(network) == before
    Runner(Batches(batches(1)), mover, NanGuard("skip"), Repeat(3), machine).run(passes=1)
    assert bits_of(network) != before


@pytest.mark.parametrize("policy", ["skip", "rollback"])
@pytest.mark.parametrize("nested", [False, True], ids=["made beforehand", "run within the run"])
def test_an_onion_made_of_the_guarded_one_leaves_it_guarded(nested, policy):
    one, other = Running(), Running(seed=1)
    guarded = updater(one, other), NanGuard(policy, snapshot_every=1), GradientMachine(one), GradientMachine(other)
    runner = Runner(Batches(batches(4, {2})), *guarded)
    part = runner.without("gradient_machine-2").replace(Batches, Batches(batches(1)))

    def run_part(state):
        if state.step == 1 and state.parent is None:
            part.run(passes=1, parent=state)

    if nested:
        runner = runner.insert_before(Batches, Observer(on_batch_begin=run_part))
    runner.run(passes=1)
    assert all(np.isfinite(each.numpy()).all() for network in (one, other) for each in network.state_dict().values())


def test_a_machine_without_a_network_is_refused():
    class Machine(RunnerItem):
        computes_gradients = True

    with pytest.raises(CompositionError, match="finds no network in machine; give it the attribute network"):
        Runner(Batches(1), updater(toy_network()), NanGuard(), Machine())


@pytest.mark.parametrize(("bad", "ends"), [({0}, 3), ({2}, 3), ({3}, 6), ({7}, None)])
def test_raise_may_look_now_and_then_and_sees_what_has_come_between(bad, ends):
    """Once weights are not finite, all later losses are not."""
    runner = onion(batches(8, bad), NanGuard(check_every=3), network=toy_network())
    if ends is None:
        assert runner.run(passes=1).step == 8
        return
    with pytest.raises(OnionError, match=f"^nan_guard: step {ends} has the loss nan"):
        runner.run(passes=1)


def test_between_two_looks_the_loss_is_not_read():
    reads = []

    class Cost:
        def __float__(self):
            reads.append(len(reads))
            return 1.0

    guard, cost = NanGuard(check_every=4), Observer(on_batch_begin=lambda state: setattr(state, "loss", Cost()))
    guard.check = lambda runner: None
    Runner(Batches(9), guard, cost).run(passes=1)
    assert len(reads) == 2


LOOKS = [("raise", 0), ("raise", True), ("raise", 1.5), ("skip", 2), ("rollback", 9)]
SAID = "check_every must be an integer >= 1, and 1 for policy {}; got {!r}"


@pytest.mark.parametrize(
    ("policy", "settings", "said"),
    [
        *((policy, {"check_every": look}, SAID.format(policy, look)) for policy, look in LOOKS),
        *(("rollback", {"snapshot_every": every}, "must be an integer >= 1") for every in (0, True, 1.5)),
        ("ignore", {}, "policy must be one of raise, skip, rollback; got 'ignore'"),
    ],
)
def test_arguments_that_are_none_are_refused(policy, settings, said):
    with pytest.raises(CompositionError, match=said):
        NanGuard(policy, **settings)


# -- many tasks --------------------------------------------------------------------------------------------------------


def poison(*steps):
    """Return an item that puts a NaN into the batches of some steps, which are numbered from 1."""

    def act(state):
        if state.next_step in steps:
            state.batch = {**state.batch, "x": state.batch["x"] * np.float32("nan")}

    return Observer(on_batch_begin=act)


def of_two_tasks(*items, guard=None, network=None):
    """Tasks in turn, so odd steps are of ``even`` and even ones of ``odd``; one network, one optimizer."""
    tasks = {name: TaskData(examples(16, seed=seed)) for seed, name in enumerate(["even", "odd"])}
    network = network or Running()
    mover = updater(network, optimizer="AdamW", weight_decay=0.1)
    return Runner(TaskSampler(tasks, RoundRobin()), *items, mover, guard or NanGuard("skip"), GradientMachine(network))


def left_out(*steps, network=None):
    """The same run in which no update is made of some batches."""
    done = []

    def count(state):
        done.append(state.batch)
        return len(done) in steps

    return of_two_tasks(SkipIf(count), network=network)


def test_an_error_names_the_task_that_was_poisoned():
    with pytest.raises(OnionError, match=r"nan_guard: step 4 \(task odd\) has the loss nan"):
        of_two_tasks(poison(4), guard=NanGuard("raise")).run(passes=1)


@pytest.mark.parametrize("bad", [(1,), (4,), (3, 4), (2, 4, 6, 8)])
def test_a_poisoned_task_leaves_no_trace_in_the_others_where_its_updates_are_skipped(bad, caplog):
    check_same(of_two_tasks(poison(*bad)), left_out(*bad))
    task = {step: "even" if step % 2 else "odd" for step in bad}
    assert caplog.messages == [
        f"nan_guard: step {step} (task {task[step]}) has the loss nan; skipped the update" for step in bad
    ]
