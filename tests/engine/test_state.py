"""What flows: the fields, metrics, and the reasons to stop."""

import ast
import inspect

import attrs
import pytest

from onion import Observer, Runner, RunnerItem, State
from onion.testing import Batches


def test_a_new_state_stands_before_the_first_batch():
    state = State()
    assert (state.pass_id, state.batch_id, state.step, state.next_step) == (0, 0, 0, 1)
    assert state.batch is state.batches is state.outputs is state.loss is state.parent is state.runner is None
    assert state.stopped is state.pass_stopped is None
    assert state.pass_cut is False
    assert (state.metrics, state.reported) == ({}, {})


def test_states_share_nothing_and_are_never_equal():
    first, second = State(), State()
    first.report({"loss": 1.0})
    assert second.metrics == second.reported == {}
    assert first != State(metrics={"loss": 1.0})
    assert len({first, second}) == 2


def test_a_field_that_does_not_exist_cannot_be_set():
    """A typing error is an error, not a new field; State has slots."""
    with pytest.raises(AttributeError):
        State().baches = []


def test_report_sets_metrics_and_the_step_they_are_of():
    state = State(step=3)
    state.report({"loss": 1.0, "accuracy": 0.5})
    state.step = 7
    state.report({"loss": 0.5})
    state.report({})
    assert state.metrics == {"loss": 0.5, "accuracy": 0.5}
    assert state.reported == {"loss": 7, "accuracy": 3}


@pytest.mark.parametrize(
    ("calls", "stopped", "pass_stopped"),
    [
        ([("stop", "enough")], "enough", "enough"),
        ([("stop", "")], "", ""),
        ([("stop_pass", "enough")], None, "enough"),
        ([("stop_pass", "a"), ("stop", "b"), ("stop", "c"), ("stop_pass", "d")], "b", "a"),
    ],
    ids=["the run and the pass", "for no reason", "the pass alone", "the first reasons are kept"],
)
def test_stops(calls, stopped, pass_stopped):
    state = State()
    for name, why in calls:
        getattr(state, name)(why)
    assert (state.stopped, state.pass_stopped) == (stopped, pass_stopped)


@attrs.define(eq=False)
class Tasks(State):
    task: str = "none"
    weights: dict = attrs.field(factory=dict)


def test_a_subclass_adds_fields_with_their_own_defaults_each_run():
    class Choose(RunnerItem):
        def on_batch(self, state):
            state.task = f"task {state.batch}"
            state.weights[state.batch] = 1.0

    runner = Runner(Batches(2), Choose(), state=Tasks)
    first, second = runner.run(passes=1), runner.run(passes=1)
    assert (first.task, first.weights) == ("task 1", {0: 1.0, 1: 1.0})
    assert first.weights is not second.weights


def test_the_loss_is_read_by_nobody_but_those_who_ask():
    """The loop never calls float() on it, which would wait for the device."""

    class Cost:
        def __float__(self):
            raise AssertionError("somebody waited for the device")

    machine = Observer(on_batch_begin=lambda state: setattr(state, "loss", Cost()))
    assert isinstance(Runner(Batches(3), machine).timed().run(passes=2).loss, Cost)


def test_every_field_is_documented():
    body = ast.parse(inspect.getsource(State)).body[0].body
    fields = [place for place, node in enumerate(body) if isinstance(node, ast.AnnAssign)]
    assert len(fields) == len(attrs.fields(State))
    for place in fields:
        following = body[place + 1]
        assert isinstance(following, ast.Expr), f"{body[place].target.id} has no documentation"
        assert isinstance(following.value, ast.Constant)


def test_a_state_is_printed_in_a_few_lines_whatever_flows():
    """It used to show the whole onion, with all its items and arrays: 38,000 characters in a notebook."""

    @attrs.define(eq=False)
    class Mine(State):
        weight: float = 2.0

    def report(state):
        state.outputs = state.loss = [0.0] * 10_000
        state.report({"loss": 0.5})

    runner = Runner(Batches([list(range(10_000))]), Runner(Observer(on_batch_begin=report)), state=Mine)
    assert repr(runner.run(passes=1)) == (
        f"{Mine.__qualname__.rpartition('>.')[2]}(pass_id=1, batch_id=0, step=1, task=None, metrics={{'loss': 0.5}}, "
        "stopped=None, pass_stopped=None, weight=2.0)"
    )
