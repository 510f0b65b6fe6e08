"""Running: limits, cut passes, ``with runner``, runs in runs, and what is refused."""

import math

import attrs
import numpy as np
import pytest

from onion import CompositionError, HookError, Observer, OnionError, Runner, RunnerItem, State
from onion.testing import Batches, Failing, PlannedError, Recorder
from tests.rings import Forgive, Within


class Look(RunnerItem):
    """Note fields of the state on the way in and out of one hook."""

    def __init__(self, hook, *fields):
        self.fields, self.seen = fields, []
        setattr(self, hook, self.look)

    def look(self, state):
        for way in ("in", "out"):
            self.seen.append((way, *(getattr(state, field) for field in self.fields)))
            if way == "in":
                yield


def stopping(at, why="enough"):
    """Return an item that stops the run at a batch."""
    return Observer(on_batch_begin=lambda state: state.batch == at and state.stop(why))


def giving(batches):
    """Return an item that gives the batches that a function of the state makes."""
    return Observer(on_pass_begin=lambda state: setattr(state, "batches", batches(state)))


class Generated(RunnerItem):
    """Give batches by a generator, which can't tell how many are left; remember how many were taken."""

    def __init__(self, *counts):
        self.counts, self.taken = counts, 0

    def on_pass(self, state):
        state.batches = self._give(self.counts[min(state.pass_id, len(self.counts) - 1)])

    def _give(self, count):
        for number in range(count):
            self.taken += 1
            yield number


# -- how long a run is -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "passes", "steps"),
    [
        ({"passes": 0}, 0, 0),
        ({"passes": 1}, 1, 4),
        ({"passes": 3}, 3, 12),
        ({"steps": 0}, 0, 0),
        ({"steps": 1}, 0, 1),
        ({"steps": 4}, 1, 4),
        ({"steps": 6}, 1, 6),
        ({"steps": 8}, 2, 8),
        ({"passes": 2, "steps": 5}, 1, 5),
        ({"passes": 2, "steps": 8}, 2, 8),
        ({"passes": 2, "steps": 100}, 2, 8),
        ({"passes": 1, "steps": 4}, 1, 4),
        ({"passes": np.int64(2), "steps": np.int32(5)}, 1, 5),
    ],
    ids=str,
)
def test_a_run_ends_with_the_first_limit_it_meets(limits, passes, steps):
    trace = []
    state = Runner(Recorder("a", trace), Batches(4)).run(**limits)
    assert (state.pass_id, state.step) == (passes, steps)
    assert trace.count("a.on_batch:out") == steps
    assert trace.count("a.initialize:out") == 1
    assert state.stopped is None


def test_the_limits_count_what_a_resumed_run_did_before():
    """An item that loads the counters in initialize, as Saver does, takes part of the limits."""

    def resume(state):
        state.pass_id, state.batch_id, state.step = 1, 2, 6

    trace, resumed = [], Observer(initialize=resume)
    state = Runner(Recorder("a", trace), resumed, Batches(4)).run(steps=9)
    assert (state.step, trace.count("a.on_batch:out")) == (9, 3)
    state = Runner(resumed, Batches(4)).run(passes=1)
    assert (state.step, state.pass_id) == (6, 1)


def test_the_counters_on_the_way_in_and_out():
    batches, passes = Look("on_batch", "pass_id", "batch_id", "step", "next_step"), Look("on_pass", "batch_id", "step")
    state = Runner(batches, passes, Batches(2)).run(passes=2)
    places = [(step // 2, step % 2, step) for step in range(4)]
    assert batches.seen[::2] == [("in", *place, place[-1] + 1) for place in places]
    assert batches.seen[1::2] == [("out", *place[:2], place[-1] + 1, place[-1] + 1) for place in places]
    assert passes.seen == [("in", 0, 0), ("out", 2, 2), ("in", 0, 2), ("out", 2, 4)]
    assert (state.pass_id, state.batch_id) == (2, 0)


# -- cut passes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "cut"), [(1, True), (3, True), (4, False)])
def test_a_pass_that_steps_end_before_its_data_is_cut_and_not_counted(steps, cut):
    look = Look("on_pass", "pass_cut")
    state = Runner(look, Batches(4)).run(steps=steps)
    assert look.seen == [("in", False), ("out", cut)]
    assert (state.pass_id, state.batch_id, state.pass_cut) == ((0, steps, True) if cut else (1, 0, False))


@pytest.mark.parametrize("count", [4, 10])
def test_of_batches_that_cannot_tell_whether_more_are_left_none_is_taken_to_find_out(count):
    data = Generated(count)
    state = Runner(data).run(steps=4)
    assert data.taken == 4
    assert (state.pass_cut, state.pass_id) == (True, 0)


@pytest.mark.parametrize(("at", "cut"), [(0, True), (2, True), (3, False)])
def test_a_pass_that_a_stop_of_the_run_ends_early_is_cut(at, cut):
    state = Runner(Batches(4), stopping(at)).run(passes=5)
    assert (state.step, state.pass_cut, state.pass_id) == (at + 1, cut, 0 if cut else 1)


def test_a_pass_that_stop_pass_ends_early_is_over_and_not_cut():
    stop = Observer(on_batch_begin=lambda state: state.stop_pass("enough"))
    state = Runner(Batches(4), stop).run(passes=3)
    assert (state.step, state.pass_cut, state.pass_id, state.batch_id) == (3, False, 3, 0)


# -- the data ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["passes", "steps"])
@pytest.mark.parametrize("number", [math.nan, math.inf, "3", 2.5, -1, True, [1]])
def test_a_number_that_is_none_is_refused_before_anything_runs(name, number):
    trace = []
    with pytest.raises(OnionError, match=rf"^run: {name} must be an integer >= 0, or None for no limit; got "):
        Runner(Recorder("a", trace), Batches(2)).run(**{name: number})
    assert trace == []


@pytest.mark.parametrize("passes_with_data", [0, 1])
def test_a_pass_without_data_is_told_to_add_some(passes_with_data):
    trace = []
    data = giving(lambda state: iter(range(3)) if state.pass_id < passes_with_data else None)
    with pytest.raises(HookError, match=r"no item put batches on the state .*; add a DataProvider"):
        Runner(Recorder("a", trace), data).run(passes=2)
    assert trace[-2:] == ["a.on_pass:error", "a.initialize:error"]


@pytest.mark.parametrize(("counts", "limits", "number"), [([0], {}, 0), ([0], {"steps": 10}, 0), ([3, 3, 0], {}, 2)])
def test_an_empty_pass_in_a_run_without_a_number_of_passes_is_an_error(counts, limits, number):
    with pytest.raises(HookError, match=rf"^pass {number} had no batch; without a number of passes this never ends"):
        Runner(Generated(*counts)).run(**limits)


def test_empty_passes_of_a_counted_run_are_just_empty():
    state = Runner(Batches(0)).run(passes=3)
    assert (state.pass_id, state.step) == (3, 0)


@pytest.mark.parametrize(("steps", "cut"), [(3, False), (2, True)])
def test_the_batches_of_a_pass_may_be_any_iterable(steps, cut):
    """A list has no place to go on at; the runner turns it into an iterator, also to tell whether the pass was cut."""
    assert Runner(giving(lambda state: [1, 2, 3])).run(steps=steps).pass_cut is cut


def test_a_ring_further_in_may_wrap_the_batches():
    look, twofold = Look("on_batch", "batch"), giving(lambda state: (batch * 2 for batch in state.batches))
    Runner(Batches(3), twofold, look).run(passes=1)
    assert [batch for _, batch in look.seen[::2]] == [0, 2, 4]


# -- with runner -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("passes", [0, 3])
def test_run_pass_returns_the_state_of_the_with_block_which_outlives_passes(passes):
    trace = []
    with Runner(Recorder("a", trace), Batches(3)) as runner:
        states = [runner.run_pass() for _ in range(passes)]
    assert [(state.pass_id, state.step, state.runner) for state in states] == [(3, 9, runner)] * passes
    assert len(set(map(id, states))) == min(passes, 1)
    assert (trace[0], trace[-1], trace.count("a.on_pass:in")) == ("a.initialize:in", "a.initialize:out", passes)


def test_a_stopped_run_runs_no_further_pass():
    with Runner(Batches(3), stopping(0)) as runner:
        runner.run_pass()
        assert runner.run_pass().step == 1


def test_an_empty_pass_is_fine_where_the_body_decides_how_many_there_are():
    with Runner(Batches(0)) as runner:
        assert runner.run_pass().pass_id == 1


def test_an_error_in_the_body_is_raised_at_the_yields_of_initialize():
    trace = []
    runner = Runner(Recorder("a", trace), Batches(1), Recorder("b", trace))
    with pytest.raises(PlannedError), runner:
        raise PlannedError
    assert trace == ["a.initialize:in", "b.initialize:in", "b.initialize:error", "a.initialize:error"]


def test_a_ring_may_swallow_an_error_of_the_body():
    swallowed = []
    with Runner(Forgive("initialize", swallowed.append), Batches(1)):
        raise PlannedError
    assert len(swallowed) == 1


def test_an_error_on_the_way_in_leaves_the_entered_rings_and_never_runs_the_body():
    trace = []
    runner = Runner(Recorder("a", trace), Failing("initialize", times=1), Recorder("b", trace), Batches(1))
    with pytest.raises(PlannedError), runner:
        trace.append("body")
    assert trace == ["a.initialize:in", "a.initialize:error"]
    with runner:
        assert runner.run_pass().step == 1


def test_an_error_on_the_way_in_must_not_be_swallowed_as_the_body_cannot_be_skipped():
    runner = Runner(Forgive("initialize"), Failing("initialize", times=1), Batches(1))
    with pytest.raises(HookError, match="whose body cannot be skipped"), runner:
        raise AssertionError("the body ran")
    assert runner.run(passes=1).step == 1, "and the runner is usable"


def test_an_error_in_a_pass_may_be_caught_in_the_body_and_the_next_pass_starts_from_its_first_batch():
    trace = []
    look = Look("on_batch", "pass_id", "batch_id")
    with Runner(Recorder("a", trace), Batches(3), look, Failing("on_batch", step=1, times=1)) as runner:
        with pytest.raises(PlannedError):
            runner.run_pass()
        state = runner.run_pass()
    assert trace.count("a.initialize:in") == trace.count("a.initialize:out") == 1
    assert trace.count("a.on_pass:error") == 1
    assert [numbers for way, *numbers in look.seen if way == "in"] == [[0, 0], [0, 1], [0, 0], [0, 1], [0, 2]]
    assert (state.pass_id, state.step) == (1, 4)


def test_run_pass_outside_of_with_is_refused():
    runner = Runner(Batches(1))
    for _ in range(2):
        with pytest.raises(HookError, match="must be called in the body of 'with runner:'"):
            runner.run_pass()
        with runner:
            runner.run_pass()


@pytest.mark.parametrize("again", [lambda runner: runner.run(passes=1), Runner.__enter__], ids=["run", "with"])
def test_run_and_with_are_refused_inside_with(again):
    runner = Runner(Batches(1))
    with runner:
        with pytest.raises(HookError, match="this runner is already running"):
            again(runner)
        assert runner.run_pass().step == 1, "and the block is unharmed"


# -- runs in runs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["initialize", "on_pass_begin", "on_batch_begin"])
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda runner: runner.run(passes=1), "already running; an inner run needs a runner of its own"),
        (lambda runner: runner.run_pass(), "not in a hook"),
    ],
    ids=["run", "run_pass"],
)
def test_a_runner_is_not_run_from_its_own_hooks(moment, call, said):
    runner = Runner(Batches(1), Observer(**{moment: lambda state: call(state.runner)}))
    with pytest.raises(HookError, match=said):
        runner.run(passes=1)
    if moment != "initialize":
        with runner, pytest.raises(HookError, match=said):
            runner.run_pass()


def test_a_runner_runs_again_and_again_each_time_with_a_fresh_state():
    runner = Runner(Batches(2))
    states = [runner.run(passes=2) for _ in range(3)]
    assert len(set(map(id, states))) == 3
    assert {(state.pass_id, state.step) for state in states} == {(2, 4)}


def test_the_inner_run_of_an_inner_run():
    """Three runs deep, each with the state around it as its parent."""
    depths = []

    def note(state):
        depths.append(0)
        while state.parent is not None:
            state = state.parent
            depths[-1] += 1

    innermost = Runner(Batches(1), Observer(on_batch_begin=note))
    middle = Runner(Batches(1), Within(innermost), Observer(on_batch_begin=note))
    Runner(Batches(1), Within(middle), Observer(on_batch_begin=note)).run(passes=1)
    assert depths == [0, 1, 2]


def test_a_nested_runner_can_also_be_run_by_itself():
    inner = Runner(Batches(2), look := Look("on_batch", "batch"))
    Runner(inner, Recorder("a")).run(passes=1)
    assert inner.run(passes=1).step == 2
    assert len(look.seen) == 8


# -- the state ---------------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Wide(State):
    margin: float = 0.5


def test_a_run_uses_the_state_class_it_was_given():
    widen = Observer(on_batch_begin=lambda state: setattr(state, "margin", state.margin * 2))
    runner = Runner(Batches(3), widen, state=Wide)
    for _ in range(2):
        state = runner.run(passes=1)
        assert isinstance(state, Wide)
        assert state.margin == 4.0


@pytest.mark.parametrize(
    "derive",
    [
        lambda runner: runner.without("a"),
        lambda runner: runner.replace("a", Recorder("b")),
        lambda runner: runner.insert_after("a", Recorder("b")),
        lambda runner: runner.timed(),
    ],
    ids=["without", "replace", "insert", "timed"],
)
def test_a_derived_runner_keeps_the_state_class_and_the_name(derive):
    runner = derive(Runner(Recorder("a"), Batches(1), state=Wide, name="train"))
    assert isinstance(runner.run(passes=1), Wide)
    assert runner.name == "train"


# -- what cannot be built ----------------------------------------------------------------------------------------------


class Layer:
    """An object that is called like a network and is no item."""

    def __call__(self, batch):
        return batch


@pytest.mark.parametrize(
    ("stranger", "says"),
    [
        (Layer(), "item 2 is a Layer, not a RunnerItem; wrap it in one (GradientMachine for a network"),
        (lambda state: None, "item 2 is a function, not a RunnerItem"),
        (Recorder, "item 2 is the class Recorder: write Recorder(...)."),
        (Layer, "item 2 is a type, not a RunnerItem"),
        (None, "item 2 is a NoneType, not a RunnerItem"),
        ([Recorder("a")], "item 2 is a list, not a RunnerItem"),
    ],
    ids=["object", "function", "class of items", "other class", "None", "list"],
)
def test_what_is_no_item_is_refused_with_its_place_and_a_remedy(stranger, says):
    with pytest.raises(CompositionError) as caught:
        Runner(Batches(1), stranger)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize("twin", [Recorder("twin"), Runner(Recorder("a"), name="twin")], ids=["item", "runner"])
@pytest.mark.parametrize(
    "compose", [lambda item: Runner(item, item), lambda item: Runner(item, Runner(Batches(1), Runner(item)))]
)
def test_an_item_stands_once_in_an_onion(compose, twin):
    said = "the item 'twin' occurs twice in one runner; use a second instance"
    with pytest.raises(CompositionError, match=said) as caught:
        compose(twin)
    assert "twin  " in str(caught.value)


class Picky(RunnerItem):
    """Call a function of the onion that is checked."""

    def __init__(self, call):
        self.check = call


def test_an_item_that_refuses_the_onion_is_heard_and_the_error_shows_the_drawing():
    def refuse(runner):
        raise CompositionError("move me further out.")

    with pytest.raises(CompositionError) as caught:
        Runner(Recorder("a"), Picky(refuse))
    assert str(caught.value).splitlines() == [
        "move me further out.",
        "",
        "Runner             initialize  pass  batch",
        "╭ a  Recorder()        ↕        ↕      ↕",
        "│  picky  Picky()      ·        ·      ·",
        "╰",
    ]


def test_an_item_is_asked_by_every_runner_it_comes_to_stand_in():
    asked = []
    inner = Runner(Picky(asked.append))
    outer = Runner(inner, Batches(1))
    assert asked == [inner, outer]


def test_names_are_settled_when_items_are_asked():
    names = []

    def look(runner):
        names.append([item.name for item in runner.walk()])

    Runner(Picky(look), Picky(look))
    assert names == [["picky", "picky-2"]] * 2


def test_a_nested_runner_with_a_state_of_its_own_wants_the_outer_one_to_have_it():
    with pytest.raises(CompositionError, match="inner needs the State Wide; give the outer Runner state=Wide"):
        Runner(Runner(Recorder("a"), name="inner", state=Wide), Batches(1))
    assert Runner(Runner(Recorder("a"), state=Wide), Batches(1), state=Wide).run(passes=1).margin == 0.5


def test_outputs_and_loss_are_those_of_the_batch_under_way():
    class Work(RunnerItem):
        def on_batch(self, state):
            if state.batch % 2:
                state.outputs, state.loss = "outputs", 1.0

    inner, outer = (Look("on_batch", "batch", "outputs", "loss") for _ in range(2))
    state = Runner(outer, Batches(4), inner, Work()).run(passes=1)
    none, some = (None, None), ("outputs", 1.0)
    assert inner.seen[::2] == outer.seen[::2] == [("in", batch, *none) for batch in range(4)]
    after = [("out", batch, *(some if batch % 2 else none)) for batch in range(4)]
    assert inner.seen[1::2] == outer.seen[1::2] == after
    assert (state.outputs, state.loss) == some
