"""Trial: a run that begins where the one around it stands, to the bit, and leaves no trace in it."""

import json
from contextlib import nullcontext
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
    Runner,
    Saver,
    TaskData,
    TaskSampler,
    Trial,
)
from onion.checkpointing import rng
from onion.testing import Batches, Failing, PlannedError, toy_examples, toy_network
from tests.abilities import needs_draws_again
from tests.items.learning import learning, plain
from tests.toys import Dropped
from tests.toys import bits as bits_of


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
    return Runner(*rings, provider(), MovingAverage(network, 0.5), *learning(network, optimizer="Adam"))


def bits(runner):
    """All that a runner's items would save; of arrays, the bytes."""
    return {item.name: plain(item.state_dict()) for item in runner.walk() if item.state_dict()}


class InBatch(Observer):
    """Call a function of the state on the way into every batch or that of one step, or out of it."""

    def __init__(self, call, way="in", step=None):
        moment = {"in": "on_batch_begin", "out": "on_batch_end"}[way]
        super().__init__(**{moment: lambda state: step in (None, state.step) and call(state)})


class Try(InBatch):
    """Run a trial of some steps after one batch, or on the way into it."""

    def __init__(self, step, way="out", steps=7, provider=data, inside=()):
        super().__init__(self.act, way, step)
        self.steps, self.provider, self.inside = steps, provider, inside
        self.losses, self.trial = Costs(), None

    def act(self, state):
        network = deepcopy(state.runner[GradientMachine].network)
        self.trial = training(network, Trial(), self.losses, *self.inside, provider=self.provider)
        self.trial.run(steps=state.step + self.steps, parent=state)


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
@pytest.mark.parametrize("inside", [(), (Failing("on_batch", step=8),)], ids=["", "which fails"])
def test_it_leaves_no_trace(way, inside):
    """Parameters, moments, order, random numbers and metrics are those of a run without."""

    class TryAndForgive(Try):
        def act(self, state):
            with pytest.raises(PlannedError) if inside else nullcontext():
                super().act(state)

    def trained(*rings):
        seen = Costs()
        paddle.seed(5)
        runner = training(Dropped(), *rings, seen)
        paddle.seed(5)
        state = runner.run(passes=2)
        return seen.found, bits(runner), rng.capture(), place(state), state.metrics

    tried = TryAndForgive(6, way, inside=inside)
    assert trained(tried) == trained()
    assert len(tried.losses.found) == (2 if inside else 7)


def test_on_the_way_into_a_batch_it_begins_with_the_batch_after_it():
    seen = []
    tried = Try(2, "in", steps=2, inside=(Observer(on_batch_begin=lambda state: seen.append(state.batch["x"])),))
    outer = []
    note = Observer(on_batch_begin=lambda state: outer.append(state.batch["x"]))
    training(Dropped(), note, tried).run(passes=1)
    assert np.array_equal(seen, outer[3:5])


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
    def share(state):
        copy = deepcopy(network)
        moved, provider = (copy, state.runner[DataProvider]) if shared == "data_provider" else (network, data())
        said = f"{shared} of the trial shares, changes or writes an object of the outer run"
        with pytest.raises(HookError, match=said):
            Runner(Trial(), provider, *learning(moved, optimizer="Adam")).run(steps=9, parent=state)
        refused.append(state.step)

    network, refused = toy_network(), []
    before = bits_of(network)
    training(network, InBatch(share)).run(steps=2)
    assert refused == [0, 1]
    assert bits_of(network) != before  # the run itself went on


def refused(trial, outer, said):
    """Run a trial from the second batch of an onion, which goes on, and expect its refusal."""
    found = []

    def ask(state):
        with pytest.raises(HookError, match=said):
            trial().run(steps=3, parent=state)
        found.append(state.step)

    outer(InBatch(ask, step=1)).run(passes=1)
    assert found == [1]


def test_the_network_itself_would_keep_the_gradients_of_a_trial_without_an_updater():
    def trained(*rings):
        training(network := toy_network(), *rings).run(passes=1)
        return bits_of(network)

    def look(state):
        network = state.runner[GradientMachine].network
        Runner(Trial(), data(), Forward(network)).run(steps=state.step + 1, parent=state)
        with pytest.raises(HookError, match="gradient_machine of the trial shares, changes or writes an object of"):
            Runner(Trial(), data(), GradientMachine(network)).run(steps=state.step + 1, parent=state)

    assert trained(InBatch(look)) == trained()


def test_a_saver_begins_where_its_folder_does(tmp_path):
    said = r"trial starts from the state of the outer run, and saver from its folder"
    with pytest.raises(CompositionError, match=said):
        Runner(Trial(), Saver(tmp_path), data(), GradientMachine(toy_network()))


# -- names -------------------------------------------------------------------------------------------------------------


def pair(networks, *rings, names=None):
    """Two networks of one shape, or one of them, each in a runner with its updater."""
    halves = [learning(network, optimizer="Adam", rate=0.0) for network in networks]
    for (mover, machine), name in zip(halves, names or [], strict=bool(names)):
        mover.name, machine.name = f"{name}_updater", name
    return Runner(*rings, data(), *(Runner(*half) for half in halves))


def take(networks, fresh, names=None, outer_names=None):
    """Run a trial of new networks in the first batch of a run; return their weights and those of before."""
    before = [bits_of(network) for network in fresh]

    def run(state):
        pair(fresh, Trial(), names=names).run(steps=state.step + 1, parent=state)

    pair(networks, InBatch(run), names=outer_names).run(steps=1)
    return [bits_of(network) for network in fresh], before


@pytest.fixture
def networks():
    return toy_network(seed=1), toy_network(seed=2)


UNCLEAR = "so it is not clear which takes over from which; give every ParameterUpdater a name, the same in both"


@pytest.mark.parametrize(
    ("tried", "outer", "outer_names", "said"),
    [
        ([1], [0, 1], None, UNCLEAR),
        ([1], [0, 1], ["first", "second"], UNCLEAR),
        ([0], [0], ["first"], f"the trial has parameter_updater, the outer run first_updater, {UNCLEAR}"),
        (
            [0, 1],
            [0],
            None,
            f"the trial has parameter_updater and parameter_updater-2, the outer run parameter_updater, {UNCLEAR}",
        ),
    ],
    ids=["one of several", "one of several with names", "one without a name", "more than the run"],
)
def test_a_trial_says_from_which_network_it_takes_over(tried, outer, outer_names, said, networks):
    refused(
        lambda: pair([deepcopy(networks[place]) for place in tried], Trial()),
        lambda ask: pair([networks[place] for place in outer], ask, names=outer_names),
        said,
    )


@pytest.mark.parametrize(("name", "chosen"), [("first", 0), ("second", 1), ("third", None)])
def test_with_a_name_it_takes_over_from_its_namesake_if_there_is_one(name, chosen, networks):
    after, before = take(networks, [toy_network(seed=3)], [name], ("first", "second"))
    assert after == (before if chosen is None else [bits_of(networks[chosen])])


def test_a_trial_of_all_of_several_networks_needs_no_names(networks):
    after, _ = take(networks, [toy_network(seed=3), toy_network(seed=4)])
    assert after == [bits_of(network) for network in networks]


# -- logs --------------------------------------------------------------------------------------------------------------


def test_its_log_is_its_own_and_begins_anew_every_time(tmp_path):
    def steps(name):
        return [json.loads(line)["step"] for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()]

    def log(name):
        return Logger(tmp_path / name, every=1)

    twice = [Try(step, steps=2, inside=[log("trial.jsonl")]) for step in (3, 6)]
    training(Dropped(), log("run.jsonl"), *twice).run(steps=8)
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
