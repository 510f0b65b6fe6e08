"""Trial: a run that begins where the one around it stands, to the bit, and leaves no trace in it."""

import json
from copy import deepcopy

import numpy as np
import paddle
import pytest

from onion import (
    CompositionError,
    DataProvider,
    Forward,
    GradientMachine,
    HookError,
    Logger,
    MovingAverage,
    Observer,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    TaskData,
    TaskSampler,
    Trial,
)
from onion.checkpointing import rng
from onion.testing import Batches, Failing, PlannedError, toy_examples, toy_network
from tests.abilities import needs_draws_again
from tests.toys import Dropped


class Costs(Observer):
    """Write down the loss of every batch, and where it was."""

    def __init__(self):
        self.found = []
        super().__init__(on_batch_end=lambda state: self.found.append((place(state), float(state.loss))))


def place(state):
    return state.pass_id, state.batch_id, state.step


def data(seed=0, examples=20):
    """Passes of five batches."""
    return DataProvider(toy_examples(examples), 4, shuffle=True, seed=seed)


def tasks():
    mixed = {"one": TaskData(data()), "two": TaskData(data(seed=1, examples=12), 0.6, target=False)}
    return TaskSampler(mixed, seed=3)


def training(network, *rings, provider=data):
    updater = ParameterUpdater(paddle.optimizer.Adam(0.05, parameters=network.parameters()))
    return Runner(*rings, provider(), MovingAverage(network, 0.5), updater, GradientMachine(network))


def bits(runner):
    """All that a runner's items would save; of arrays, the bytes."""
    return {
        item.name: {name: array(value) for name, value in item.state_dict().items()}
        for item in runner.walk()
        if item.state_dict()
    }


def array(value):
    return np.asarray(value).tobytes() if hasattr(value, "numpy") else value


class Try(RunnerItem):
    """Run a trial of some steps after one batch, or on the way into it."""

    def __init__(self, step, way="out", steps=7, provider=data, inside=()):
        self.step, self.way, self.steps, self.provider, self.inside = step, way, steps, provider, inside
        self.losses, self.trial, self.state = Costs(), None, None

    def on_batch(self, state):
        if (state.step, self.way) == (self.step, "in"):
            self.act(state)
        yield
        if (state.step, self.way) == (self.step, "out"):
            self.act(state)

    def act(self, state):
        network = deepcopy(state.runner[GradientMachine].network)
        self.trial = training(network, Trial(), self.losses, *self.inside, provider=self.provider)
        self.state = self.trial.run(steps=state.step + self.steps, parent=state)


@pytest.mark.parametrize("provider", [data, tasks])
@pytest.mark.parametrize("step", [1, 3, 4, 5, 6])
def test_a_trial_with_the_same_settings_is_the_run_itself_to_the_bit(step, provider):
    """Dropout, moments, averages and order included, and over the ends of passes (5 batches)."""
    tried = Try(step, provider=provider)
    paddle.seed(5)
    outer, seen = training(Dropped(), tried, provider=provider), Costs()
    expected = training(Dropped(), seen, provider=provider)
    paddle.seed(5)
    outer.run(steps=step)
    paddle.seed(5)
    expected.run(steps=step + 7)
    assert len(seen.found) == step + 7
    assert tried.losses.found == seen.found[step:]
    assert bits(tried.trial) == bits(expected)


@needs_draws_again
@pytest.mark.parametrize("way", ["in", "out"])
@pytest.mark.parametrize("inside", [(), (Failing("on_batch", step=8),)])
def test_it_leaves_no_trace(way, inside):
    """Nor if it fails: parameters, moments, order, random numbers and metrics are those of a run without."""

    forgiven = []

    class TryAndForgive(Try):
        def act(self, state):
            try:
                super().act(state)
            except PlannedError:
                forgiven.append(state.step)

    def trained(*rings):
        seen = Costs()
        paddle.seed(5)
        runner = training(Dropped(), *rings, seen)
        paddle.seed(5)
        state = runner.run(passes=2)
        return seen.found, bits(runner), rng.capture(), place(state), state.metrics

    tried = TryAndForgive(6, way, inside=inside)
    assert trained(tried) == trained()
    assert bool(forgiven) == bool(inside)
    assert len(tried.losses.found) == (2 if inside else 7)


def test_on_the_way_into_a_batch_it_begins_with_the_batch_after_it():
    seen = []
    tried = Try(2, "in", steps=2, inside=(Observer(on_batch_begin=lambda state: seen.append(state.batch["x"])),))
    outer = []
    note = Observer(on_batch_begin=lambda state: outer.append(state.batch["x"]))
    training(Dropped(), note, tried).run(passes=1)
    assert np.array_equal(seen, outer[3:5])


@needs_draws_again
def test_trials_that_differ_in_one_setting_begin_alike():
    """The first losses are the same, for the same parameters, examples and dropout; the second ones are not."""
    losses = {}

    class Rates(RunnerItem):
        def on_batch(self, state):
            yield
            for rate in (0.01, 0.1):
                found = Costs()
                network = deepcopy(state.runner[GradientMachine].network)
                optimizer = paddle.optimizer.Adam(rate, parameters=network.parameters())
                trial = Runner(Trial(), found, data(), ParameterUpdater(optimizer), GradientMachine(network))
                trial.run(steps=state.step + 2, parent=state)
                losses.setdefault(rate, []).extend(found.found)

    training(Dropped(), Rates()).run(steps=3)
    assert len(losses[0.01]) == 6
    assert losses[0.01][0::2] == losses[0.1][0::2]
    assert all(small != large for small, large in zip(losses[0.01][1::2], losses[0.1][1::2], strict=True))


def test_what_the_other_run_has_not_begins_anew():
    """An updater of another name has gathered nothing; the network goes on."""

    class Other(ParameterUpdater):
        name = "other"

    class Look(RunnerItem):
        def on_batch(self, state):
            yield
            copy = deepcopy(network)
            updaters = [
                kind(paddle.optimizer.Adam(0.0, parameters=copy.parameters())) for kind in (ParameterUpdater, Other)
            ]
            for updater in updaters:
                machine = GradientMachine(copy)
                Runner(Trial(), data(), updater, machine).run(steps=state.step + 1, parent=state)
                powers[updater.name] = updater.state_dict()["gradient_machine.linear.weight/beta1_pow_acc"].item()
            weights.extend(each.linear.weight.numpy().tobytes() for each in (copy, network))

    network, powers, weights = toy_network(), {}, []
    training(network, Look()).run(steps=1)
    assert powers["parameter_updater"] == pytest.approx(powers["other"] * 0.9)  # of two steps, and of one
    assert weights[0] == weights[1]


# -- refused -----------------------------------------------------------------------------------------------------------


def test_it_stands_outside_everything_that_has_a_state(tmp_path):
    network = toy_network()
    for outside in (data(), Saver(tmp_path)):
        with pytest.raises(CompositionError, match=f"trial is inside {outside.name}, .* move it further out"):
            Runner(outside, Trial(), GradientMachine(network))
    Runner(Observer(), Trial(), data(), GradientMachine(network))


def test_without_a_run_around_it_is_refused():
    before = rng.capture()
    with pytest.raises(HookError, match=r"trial starts from the state of an outer run; .* run\(parent=state\)"):
        Runner(Trial(), Batches(2)).run(passes=1)
    assert rng.capture() == before


@pytest.mark.parametrize("shared", ["data_provider", "parameter_updater"])
def test_objects_of_the_run_around_are_refused_before_anything_is_taken_over(shared):
    class Share(RunnerItem):
        def on_batch(self, state):
            copy = deepcopy(network)
            moved = {"data_provider": copy, "parameter_updater": network}[shared]
            updater = ParameterUpdater(paddle.optimizer.Adam(0.1, parameters=moved.parameters()))
            provider = state.runner[DataProvider] if shared == "data_provider" else data()
            with pytest.raises(
                HookError, match=f"{shared} of the trial shares, changes or writes an object of the outer run"
            ):
                Runner(Trial(), provider, updater, GradientMachine(moved)).run(steps=9, parent=state)
            refused.append(state.step)

    network, refused = toy_network(), []
    before = network.linear.weight.numpy().copy()
    runner = training(network, Share())
    runner.run(steps=2)
    assert refused == [0, 1]
    assert not np.array_equal(network.linear.weight.numpy(), before)  # the run itself went on


def refused(trial, outer, said):
    """Run a trial from the second batch of an onion, which goes on; insist on the refusal."""
    found = []

    class Ask(RunnerItem):
        def on_batch(self, state):
            if state.step == 1:
                with pytest.raises(HookError, match=said):
                    trial().run(steps=3, parent=state)
                found.append(state.step)

    outer(Ask()).run(passes=1)
    assert found == [1]


def test_the_network_itself_would_keep_the_gradients_of_a_trial_without_an_updater():
    def trained(*rings):
        training(network := toy_network(), *rings).run(passes=1)
        return network.linear.weight.numpy().tobytes()

    class Look(RunnerItem):
        def on_batch(self, state):
            network = state.runner[GradientMachine].network
            Runner(Trial(), data(), Forward(network)).run(steps=state.step + 1, parent=state)
            with pytest.raises(HookError, match="gradient_machine of the trial shares, changes or writes an object of"):
                Runner(Trial(), data(), GradientMachine(network)).run(steps=state.step + 1, parent=state)

    assert trained(Look()) == trained()


def test_a_saver_begins_where_its_folder_does(tmp_path):
    with pytest.raises(
        CompositionError, match=r"trial starts from the state of the outer run, and saver from its folder"
    ):
        Runner(Trial(), Saver(tmp_path), data(), GradientMachine(toy_network()))


# -- names -------------------------------------------------------------------------------------------------------------


def pair(networks, *rings, names=(None, None)):
    """Two networks of one shape, or one of them, each in a runner with its updater."""
    halves = []
    for network, name in zip(networks, names, strict=True):
        updater = ParameterUpdater(paddle.optimizer.Adam(0.0, parameters=network.parameters()))
        machine = GradientMachine(network)
        if name:
            updater.name, machine.name = f"{name}_updater", name
        halves.append(Runner(updater, machine))
    return Runner(*rings, data(), *halves)


@pytest.mark.parametrize("outer_names", [(None, None), ("first", "second")])
def test_a_trial_of_one_of_several_networks_says_which(outer_names):
    networks = toy_network(seed=1), toy_network(seed=2)
    refused(
        lambda: pair([deepcopy(networks[1])], Trial(), names=[None]),
        lambda ask: pair(networks, ask, names=outer_names),
        "so it is not clear which takes over from which; give every ParameterUpdater a name, the same in both",
    )


@pytest.mark.parametrize("chosen", [0, 1])
def test_with_a_name_it_takes_over_from_its_namesake(chosen):
    networks = toy_network(seed=1), toy_network(seed=2)
    fresh = toy_network(seed=3)
    name = ("first", "second")[chosen]

    class Take(RunnerItem):
        def on_batch(self, state):
            pair([fresh], Trial(), names=[name]).run(steps=state.step + 1, parent=state)

    pair(networks, Take(), names=("first", "second")).run(steps=1)
    assert np.array_equal(fresh.linear.weight, networks[chosen].linear.weight)


def test_one_without_a_name_is_not_taken_for_one_with():
    network = toy_network(seed=1)
    refused(
        lambda: pair([deepcopy(network)], Trial(), names=[None]),
        lambda ask: pair([network], ask, names=["first"]),
        "the trial has parameter_updater, the outer run first_updater, so it is not clear",
    )


def test_a_name_of_its_own_lets_it_begin_anew():
    networks = toy_network(seed=1), toy_network(seed=2)
    fresh = toy_network(seed=3)
    before = fresh.linear.weight.numpy().copy()

    class Take(RunnerItem):
        def on_batch(self, state):
            pair([fresh], Trial(), names=["third"]).run(steps=state.step + 1, parent=state)

    pair(networks, Take()).run(steps=1)
    assert np.array_equal(fresh.linear.weight, before)


def test_a_trial_of_all_of_several_networks_needs_no_names():
    networks = toy_network(seed=1), toy_network(seed=2)
    fresh = toy_network(seed=3), toy_network(seed=4)

    class Take(RunnerItem):
        def on_batch(self, state):
            pair(fresh, Trial()).run(steps=state.step + 1, parent=state)

    pair(networks, Take()).run(steps=1)
    for own, other in zip(fresh, networks, strict=True):
        assert np.array_equal(own.linear.weight, other.linear.weight)


def test_a_trial_with_more_networks_than_the_run_says_which_is_its():
    networks = toy_network(seed=1), toy_network(seed=2)
    refused(
        lambda: pair(deepcopy(networks), Trial()),
        lambda ask: pair(networks[:1], ask, names=[None]),
        "the trial has parameter_updater and parameter_updater-2, the outer run parameter_updater, so it is not",
    )


# -- logs --------------------------------------------------------------------------------------------------------------


def test_its_log_is_its_own_and_begins_anew_every_time(tmp_path):
    def steps(name):
        return [json.loads(line)["step"] for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()]

    class Twice(Try):
        def on_batch(self, state):
            yield
            if state.step in (3, 6):
                self.inside = (Logger(tmp_path / "trial.jsonl", every=1),)
                self.act(state)

    training(Dropped(), Logger(tmp_path / "run.jsonl", every=1), Twice(0, steps=2)).run(steps=8)
    assert steps("run.jsonl") == list(range(1, 9))
    assert steps("trial-1.jsonl") == [4, 5]
    assert steps("trial.jsonl") == [7, 8]


def test_the_log_of_the_run_around_is_refused(tmp_path):
    network = toy_network()
    refused(
        lambda: training(deepcopy(network), Trial(), Logger(tmp_path / "x" / ".." / "log.jsonl", every=1)),
        lambda ask: training(network, Logger(tmp_path / "log.jsonl", every=1), ask),
        "logger of the trial shares, changes or writes an object of the outer run; .* another log file",
    )
    assert len((tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()) == 5
