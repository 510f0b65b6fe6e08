"""Tester: a test onion that runs inside the training onion, and leaves it as it was."""

import paddle
import pytest

from onion import (
    CompositionError,
    DataProvider,
    Evaluator,
    Forward,
    GradientMachine,
    Observer,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    Tester,
)
from onion.engine.item import HOOKS
from onion.testing import Batches, Failing, PlannedError, toy_examples, toy_network
from tests.abilities import needs_draws_again
from tests.items.learning import examples, learning
from tests.rings import Forgive
from tests.toys import Dropped, bits


class Reporting(RunnerItem):
    """A test that reports how often it ran and what it saw of its parent."""

    def __init__(self, **figures):
        self.figures = figures
        self.parents = []

    def on_pass(self, state):
        yield
        self.parents.append((state.parent.step, state.parent.pass_id, state.step))
        state.report({"count": len(self.parents), **self.figures})


@pytest.mark.parametrize(("settings", "name"), [({}, "tester"), ({"name": "dev"}, "dev")])
def test_figures_become_ours_under_the_testers_name_with_the_outer_step(settings, name):
    tester = Tester(Runner(Reporting(loss=0.5), Batches(2)), every=3, **settings)
    state = Runner(tester, Batches(4)).run(passes=1)
    assert state.metrics == {f"{name}.count": 1, f"{name}.loss": 0.5}
    assert state.reported == {f"{name}.count": 3, f"{name}.loss": 3}


def test_several_have_data_and_periods_of_their_own():
    tests = [Reporting() for _ in range(3)]
    often, seldom, passes = (Runner(test, Batches(size)) for test, size in zip(tests, (1, 2, 3), strict=True))
    testers = Tester(passes), Tester(seldom, every=5), Tester(often, every=2), Tester(seldom.without(), every=4)
    Runner(*testers, Batches(6)).run(passes=2)
    steps = [[(step, size) for step, _, size in test.parents] for test in tests]
    assert steps[0] == [(step, 1) for step in (2, 4, 6, 8, 10, 12)]
    assert steps[1] == [(step, 2) for step in (4, 5, 8, 10, 12)]
    assert steps[2] == [(step, 3) for step in (6, 12)]


def test_the_inner_state_is_its_own_and_knows_its_parent():
    test = Reporting()
    inner = []
    outer = Runner(Tester(Runner(Observer(initialize=inner.append), test, Batches(2)), every=3), Batches(4)).run(
        passes=1
    )
    assert test.parents == [(3, 0, 2)]
    assert inner[0].parent is outer
    assert outer.parent is None
    assert (outer.step, outer.batch_id, outer.pass_id) == (4, 0, 1)


def test_the_outer_batch_outputs_and_loss_stay():
    def work(state):
        state.outputs, state.loss = f"outputs {state.batch}", 0.5

    seen = []
    look = Observer(on_batch_end=lambda state: seen.append((state.batch, state.outputs, float(state.loss))))
    tester = Tester(Runner(Reporting(), Batches(7)), every=1)
    Runner(look, tester, Observer(on_batch_begin=work), Batches(2)).run(passes=1)
    assert seen == [(0, "outputs 0", 0.5), (1, "outputs 1", 0.5)]


class Count:
    def reset(self):
        self.outputs = []

    def update(self, outputs, batch):
        self.outputs.append(outputs.numpy().tobytes())

    def result(self):
        return {"n": len(self.outputs)}


def training(*extra, every=2):
    paddle.seed(1)
    network = Dropped()
    test = Tester(Runner(examples(8), *extra, Evaluator(Count()), Forward(network)), every=every)
    return network, Runner(examples(24), test, *learning(network, optimizer="Adam"))


@pytest.mark.parametrize("inside", [[], [Failing("on_batch", "in")]], ids=["", "which fails"])
def test_testing_the_network_that_is_trained_does_not_change_its_training(inside):
    tested, runner = training(*inside)
    runner.insert_before(Tester, Forgive()).run(passes=2)
    untested, runner = training()
    runner.without(Tester).run(passes=2)
    assert bits(tested) == bits(untested)
    assert tested.training
    assert tested.dropout.training


def test_the_test_runs_in_evaluation_mode():
    modes = []

    def look():
        return Observer(on_batch_begin=lambda state: modes.append(network.dropout.training))

    network, runner = training(look())
    runner.insert_before(ParameterUpdater, look()).run(steps=3)
    assert modes == [True, True, False, False, True]


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("way", ["in", "out"])
def test_a_failing_test_passes_its_error_out_and_training_can_go_on(hook, way):
    network, runner = training(Failing(hook, way, times=1))
    with pytest.raises(PlannedError):
        runner.run(steps=4)
    assert network.training
    assert network.dropout.training
    state = runner.run(steps=4)
    assert state.step == 4
    assert state.metrics == {"tester.n": 2}


@needs_draws_again
@pytest.mark.parametrize("cut", [None, 1, 2, 3, 7])
def test_a_test_made_of_the_training_shares_its_data_and_leaves_its_place(cut, tmp_path):
    """DESIGN rule 7: a test onion is a training onion with some rings left out or replaced."""

    def made(folder, tested):
        paddle.seed(1)
        network = Dropped()
        data = DataProvider(toy_examples(24), 4, shuffle=True)
        runner = Runner(Saver(folder, every=2), data, *learning(network, optimizer="Adam"))
        test = runner.without(Saver, ParameterUpdater).replace(GradientMachine, Forward(network))
        return network, runner.insert_before(DataProvider, Tester(test, every=1)) if tested else runner

    untested, runner = made(tmp_path / "untested", False)
    examples = runner.run(passes=2) and runner[DataProvider].log_values()
    if cut:
        made(tmp_path / "tested", True)[1].run(steps=cut)
    tested, runner = made(tmp_path / "tested", True)
    runner.run(passes=2)
    assert bits(tested) == bits(untested)
    assert runner[DataProvider].log_values() == examples


@pytest.mark.parametrize("what", [Batches(1), None, toy_network])
def test_what_is_no_runner_is_refused_with_how_to_write_it(what):
    with pytest.raises(CompositionError, match=r"Tester runs a Runner, not a .*: Tester\(Runner\(\.\.\.\)\)"):
        Tester(what)


def test_pytest_does_not_take_the_class_for_tests():
    assert Tester.__test__ is False
