"""The contract of the ring: the ten rules of the design, a group of tests each, and whole traces written out."""

import sys
from contextlib import suppress

import pytest

from onion import HookError, Runner, RunnerItem, State
from onion.testing import Batches, Failing, PlannedError, Recorder
from tests.counting import python_calls


class Plain(RunnerItem):
    """A ring without a way out."""

    def __init__(self, trace):
        self.trace = trace

    def initialize(self, state):
        self.trace.append("plain.initialize")

    def on_pass(self, state):
        self.trace.append("plain.on_pass")

    def on_batch(self, state):
        self.trace.append("plain.on_batch")


class Yields(RunnerItem):
    """Run the inside so many times a batch."""

    def __init__(self, times):
        self.times = times

    def on_batch(self, state):
        for _ in range(self.times):
            yield


class Call(RunnerItem):
    """Call a function of the state at one moment of every run, pass or batch."""

    def __init__(self, hook, way, function):
        self.moment, self.function = (hook, way), function

    def initialize(self, state):
        yield from self._at("initialize", state)

    def on_pass(self, state):
        yield from self._at("on_pass", state)

    def on_batch(self, state):
        yield from self._at("on_batch", state)

    def _at(self, hook, state):
        if self.moment == (hook, "in"):
            self.function(state)
        yield
        if self.moment == (hook, "out"):
            self.function(state)


class RunsInside(RunnerItem):
    """Run another onion on the way out of every batch, as Tester does."""

    def __init__(self, runner):
        self.runner = runner

    def on_batch(self, state):
        yield
        self.runner.run(passes=1, parent=state)


class Source(RunnerItem):
    """Give the numbers below n, and remember how many were taken."""

    def __init__(self, n):
        self.n, self.taken = n, 0

    def on_pass(self, state):
        state.batches = self._numbers()

    def _numbers(self):
        for number in range(self.n):
            self.taken += 1
            yield number


def recorders(trace, names):
    return [Recorder(name, trace) for name in names]


# -- whole traces ------------------------------------------------------------------------------------------------------


def test_trace_of_a_single_runner():
    trace = []
    Runner(Recorder("a", trace), Batches(2), Recorder("b", trace)).run(passes=2)
    assert trace == [
        "a.initialize:in",
        "b.initialize:in",
        # pass 0
        "a.on_pass:in",
        "b.on_pass:in",
        "a.on_batch:in",
        "b.on_batch:in",
        "b.on_batch:out",
        "a.on_batch:out",
        "a.on_batch:in",
        "b.on_batch:in",
        "b.on_batch:out",
        "a.on_batch:out",
        "b.on_pass:out",
        "a.on_pass:out",
        # pass 1
        "a.on_pass:in",
        "b.on_pass:in",
        "a.on_batch:in",
        "b.on_batch:in",
        "b.on_batch:out",
        "a.on_batch:out",
        "a.on_batch:in",
        "b.on_batch:in",
        "b.on_batch:out",
        "a.on_batch:out",
        "b.on_pass:out",
        "a.on_pass:out",
        "b.initialize:out",
        "a.initialize:out",
    ]


def test_trace_of_a_nested_runner():
    """Its batch rings are wound up before the outer onion goes on; its scopes stay open around what follows."""
    trace = []
    Runner(Batches(1), Recorder("a", trace), Runner(Recorder("b", trace)), Recorder("c", trace)).run(passes=1)
    assert trace == [
        "a.initialize:in",
        "b.initialize:in",
        "c.initialize:in",
        "a.on_pass:in",
        "b.on_pass:in",
        "c.on_pass:in",
        "a.on_batch:in",
        "b.on_batch:in",
        "b.on_batch:out",
        "c.on_batch:in",
        "c.on_batch:out",
        "a.on_batch:out",
        "c.on_pass:out",
        "b.on_pass:out",
        "a.on_pass:out",
        "c.initialize:out",
        "b.initialize:out",
        "a.initialize:out",
    ]


def test_trace_of_a_gan():
    trace = []
    d_updater, d_machine, g_updater, g_machine = recorders(trace, ["d_updater", "d_machine", "g_updater", "g_machine"])
    Runner(Batches(2), Runner(d_updater, d_machine), Runner(g_updater, g_machine)).run(passes=1)
    assert trace == [
        "d_updater.initialize:in",
        "d_machine.initialize:in",
        "g_updater.initialize:in",
        "g_machine.initialize:in",
        "d_updater.on_pass:in",
        "d_machine.on_pass:in",
        "g_updater.on_pass:in",
        "g_machine.on_pass:in",
        # batch 0
        "d_updater.on_batch:in",
        "d_machine.on_batch:in",
        "d_machine.on_batch:out",
        "d_updater.on_batch:out",
        "g_updater.on_batch:in",
        "g_machine.on_batch:in",
        "g_machine.on_batch:out",
        "g_updater.on_batch:out",
        # batch 1
        "d_updater.on_batch:in",
        "d_machine.on_batch:in",
        "d_machine.on_batch:out",
        "d_updater.on_batch:out",
        "g_updater.on_batch:in",
        "g_machine.on_batch:in",
        "g_machine.on_batch:out",
        "g_updater.on_batch:out",
        "g_machine.on_pass:out",
        "g_updater.on_pass:out",
        "d_machine.on_pass:out",
        "d_updater.on_pass:out",
        "g_machine.initialize:out",
        "g_updater.initialize:out",
        "d_machine.initialize:out",
        "d_updater.initialize:out",
    ]


def test_trace_of_two_levels_of_nesting():
    trace = []
    a, b, c, d, e = recorders(trace, "abcde")
    Runner(Batches(1), a, Runner(b, Runner(c), d), e).run(passes=1)
    assert trace == [
        *[f"{name}.initialize:in" for name in "abcde"],
        *[f"{name}.on_pass:in" for name in "abcde"],
        "a.on_batch:in",
        "b.on_batch:in",
        "c.on_batch:in",
        "c.on_batch:out",
        "d.on_batch:in",
        "d.on_batch:out",
        "b.on_batch:out",
        "e.on_batch:in",
        "e.on_batch:out",
        "a.on_batch:out",
        *[f"{name}.on_pass:out" for name in "edcba"],
        *[f"{name}.initialize:out" for name in "edcba"],
    ]


def test_trace_of_a_runner_that_is_run_from_a_hook_of_another():
    trace = []
    test = Runner(Batches(2), Recorder("test", trace))
    Runner(Recorder("a", trace), Batches(1), RunsInside(test), Recorder("b", trace)).run(passes=1)
    assert trace == [
        "a.initialize:in",
        "b.initialize:in",
        "a.on_pass:in",
        "b.on_pass:in",
        "a.on_batch:in",
        "b.on_batch:in",
        "b.on_batch:out",
        "test.initialize:in",
        "test.on_pass:in",
        "test.on_batch:in",
        "test.on_batch:out",
        "test.on_batch:in",
        "test.on_batch:out",
        "test.on_pass:out",
        "test.initialize:out",
        "a.on_batch:out",
        "b.on_pass:out",
        "a.on_pass:out",
        "b.initialize:out",
        "a.initialize:out",
    ]


# -- 1: a hook without a yield runs on the way in; one that is not overridden costs nothing ----------------------------


def test_rule_1_a_hook_without_a_yield_runs_on_the_way_in_only():
    trace = []
    Runner(Recorder("a", trace), Plain(trace), Batches(1), Recorder("b", trace)).run(passes=1)
    assert trace == [
        "a.initialize:in",
        "plain.initialize",
        "b.initialize:in",
        "a.on_pass:in",
        "plain.on_pass",
        "b.on_pass:in",
        "a.on_batch:in",
        "plain.on_batch",
        "b.on_batch:in",
        "b.on_batch:out",
        "a.on_batch:out",
        "b.on_pass:out",
        "a.on_pass:out",
        "b.initialize:out",
        "a.initialize:out",
    ]


def test_rule_1_a_hook_that_is_not_overridden_costs_not_one_call():
    class Idle(RunnerItem):
        pass

    bare = Runner(Batches(50), Yields(1))
    crowded = Runner(Idle(), Batches(50), Idle(), Yields(1), *[Idle() for _ in range(20)])
    assert python_calls(lambda: crowded.run(passes=2)) == python_calls(lambda: bare.run(passes=2))


# -- 2: on_batch may yield any number of times; each yield runs the inside once ----------------------------------------


@pytest.mark.parametrize("times", [0, 1, 2, 5])
def test_rule_2_each_yield_of_on_batch_runs_the_inside_once(times):
    trace = []
    Runner(Recorder("a", trace), Batches(1), Yields(times), Recorder("b", trace)).run(passes=1)
    batch = [entry for entry in trace if "on_batch" in entry]
    assert batch == ["a.on_batch:in", *["b.on_batch:in", "b.on_batch:out"] * times, "a.on_batch:out"]


def test_rule_2_repetitions_multiply():
    trace = []
    Runner(Batches(1), Yields(2), Yields(3), Recorder("a", trace)).run(passes=1)
    assert trace.count("a.on_batch:in") == trace.count("a.on_batch:out") == 6


def test_rule_2_a_skipped_batch_is_no_step():
    class Odd(RunnerItem):
        def on_batch(self, state):
            if state.batch % 2:
                yield

    trace = []
    state = Runner(Batches(5), Odd(), Recorder("a", trace)).run(passes=1)
    assert trace.count("a.on_batch:in") == 2
    assert state.step == 2


def test_rule_2_a_doubled_batch_is_one_step():
    assert Runner(Batches(3), Yields(2), Yields(2)).run(passes=1).step == 3


def test_rule_2_gradient_accumulation_is_an_ordinary_item():
    """An updater around it asks for three batches at each update: it yields once for each batch it draws itself."""
    updates = []

    class Updater(RunnerItem):
        def on_batch(self, state):
            state.loss = 0
            yield
            updates.append(state.loss)

    class Accumulate(RunnerItem):
        def on_batch(self, state):
            yield
            for _ in range(2):
                state.batch = next(state.batches)
                yield

    class Machine(RunnerItem):
        def on_batch(self, state):
            state.loss += state.batch

    state = Runner(Batches([1, 2, 3, 4, 5, 6]), Updater(), Accumulate(), Machine()).run(passes=1)
    assert updates == [1 + 2 + 3, 4 + 5 + 6]
    assert state.step == state.next_step == 2


def test_rule_2_k_critic_steps_are_an_ordinary_item_of_a_nested_runner():
    trace = []
    critic, generator = recorders(trace, ["critic", "generator"])
    state = Runner(Batches(2), Runner(Yields(3), critic), Runner(generator)).run(passes=1)
    batch = [*["critic.on_batch:in", "critic.on_batch:out"] * 3, "generator.on_batch:in", "generator.on_batch:out"]
    assert [entry for entry in trace if "on_batch" in entry] == batch * 2
    assert state.step == 2


def test_rule_2_a_nested_runner_that_skips_does_not_skip_what_follows_it():
    trace = []
    Runner(Batches(1), Runner(Yields(0), Recorder("a", trace)), Recorder("b", trace)).run(passes=1)
    assert [entry for entry in trace if "on_batch" in entry] == ["b.on_batch:in", "b.on_batch:out"]


def test_rule_2_splitting_a_batch_runs_the_inside_for_each_part():
    class Split(RunnerItem):
        def on_batch(self, state):
            for part in state.batch:
                state.batch = part
                yield

    seen = []
    state = Runner(Batches(["ab", "cde"]), Split(), Call("on_batch", "in", lambda state: seen.append(state.batch))).run(
        1
    )
    assert seen == ["a", "b", "c", "d", "e"]
    assert state.step == 2


# -- 3: initialize and on_pass yield exactly once ----------------------------------------------------------------------


class Wrong(RunnerItem):
    """Yield in one scope another number of times than once."""

    def __init__(self, hook, yields):
        self.yields = {"initialize": 1, "on_pass": 1, hook: yields}

    def initialize(self, state):
        for _ in range(self.yields["initialize"]):
            yield

    def on_pass(self, state):
        for _ in range(self.yields["on_pass"]):
            yield


@pytest.mark.parametrize("hook", ["initialize", "on_pass"])
@pytest.mark.parametrize(
    ("yields", "says"),
    [
        (0, "ended without a yield; in this hook it must yield exactly once."),
        (2, "yielded a second time; only on_batch may run its inside more than once."),
        (3, "yielded a second time; only on_batch may run its inside more than once."),
    ],
)
def test_rule_3_any_other_number_of_yields_is_an_error_that_names_the_item_and_the_hook(hook, yields, says):
    item = Wrong(hook, yields)
    item.name = "mine"
    with pytest.raises(HookError) as caught:
        Runner(Batches(1), item).run(passes=1)
    assert str(caught.value) == f"mine (Wrong).{hook} {says}"


@pytest.mark.parametrize("hook", ["initialize", "on_pass"])
@pytest.mark.parametrize("yields", [0, 2])
def test_rule_3_the_rings_outside_the_wrong_one_leave_by_the_error(hook, yields):
    trace = []
    with pytest.raises(HookError):
        Runner(Recorder("a", trace), Wrong(hook, yields), Batches(1), Recorder("b", trace)).run(passes=1)
    assert [entry for entry in trace if entry.endswith(":error")] == {
        "initialize": ["a.initialize:error"],
        "on_pass": ["a.on_pass:error", "b.initialize:error", "a.initialize:error"],
    }[hook]
    assert (f"b.{hook}:out" in trace) == (yields == 2)


def test_rule_3_a_plain_initialize_or_on_pass_needs_no_yield():
    trace = []
    Runner(Plain(trace), Batches(1)).run(passes=1)
    assert trace == ["plain.initialize", "plain.on_pass", "plain.on_batch"]


def test_rule_3_a_yield_in_answer_to_an_error_is_a_second_one_and_the_error_is_its_cause():
    class Stubborn(RunnerItem):
        def on_pass(self, state):
            try:
                yield
            except PlannedError:
                yield

    with pytest.raises(HookError, match=r"^stubborn \(Stubborn\)\.on_pass yielded a second time") as caught:
        Runner(Stubborn(), Batches(1), Failing("on_batch")).run(passes=1)
    assert isinstance(caught.value.__cause__, PlannedError)


# -- 4: errors; the whole matrix is in test_rings.py -------------------------------------------------------------------


def test_rule_4_an_error_passes_each_entered_ring_at_its_yield_the_innermost_first():
    trace = []
    a, b, c, d = recorders(trace, "abcd")
    runner = Runner(a, Batches(3), Runner(b, Failing("on_batch", "out", step=1), c), d)
    with pytest.raises(PlannedError, match="on_batch out"):
        runner.run(passes=1)
    assert trace[-14:] == [
        "a.on_batch:in",
        "b.on_batch:in",
        "c.on_batch:in",
        "c.on_batch:out",
        # here it fails; d, further in, is not entered
        "b.on_batch:error",
        "a.on_batch:error",
        "d.on_pass:error",
        "c.on_pass:error",
        "b.on_pass:error",
        "a.on_pass:error",
        "d.initialize:error",
        "c.initialize:error",
        "b.initialize:error",
        "a.initialize:error",
    ]


def test_rule_4_try_except_finally_and_with_work_as_in_any_function():
    log = []

    class Careful(RunnerItem):
        def on_batch(self, state):
            with suppress(PlannedError):
                try:
                    yield
                finally:
                    log.append(f"finally {state.batch}")
            log.append(f"swallowed {state.batch}")

    Runner(Batches(2), Careful(), Failing("on_batch")).run(passes=1)
    assert log == ["finally 0", "swallowed 0", "finally 1", "swallowed 1"]


def test_rule_4_an_error_in_an_inner_run_leaves_the_outer_rings_too():
    trace = []
    test = Runner(Recorder("test", trace), Batches(1), Failing("on_pass", "out"))
    with pytest.raises(PlannedError):
        Runner(Recorder("a", trace), Batches(1), RunsInside(test)).run(passes=1)
    assert trace[-5:] == [
        "test.on_pass:error",
        "test.initialize:error",
        "a.on_batch:error",
        "a.on_pass:error",
        "a.initialize:error",
    ]


# -- 5: stopping -------------------------------------------------------------------------------------------------------

PLACES = [(hook, way) for hook in ("initialize", "on_pass", "on_batch") for way in ("in", "out")]


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
@pytest.mark.parametrize(("hook", "way"), PLACES)
def test_rule_5_stop_ends_the_run_from_every_place_and_every_ring_leaves_normally(hook, way, nested):
    trace = []
    source = Source(5)
    stopper = Call(hook, way, lambda state: state.stop("enough"))
    inner = Runner(Recorder("b", trace), stopper) if nested else stopper
    state = Runner(Recorder("a", trace), source, inner, Recorder("c", trace)).run(passes=3)

    assert state.stopped == "enough"
    assert not [entry for entry in trace if entry.endswith(":error")]
    passes, batches = {
        ("initialize", "in"): (0, 0),
        ("initialize", "out"): (3, 15),
        ("on_pass", "in"): (1, 0),
        ("on_pass", "out"): (1, 5),
        ("on_batch", "in"): (1, 1),
        ("on_batch", "out"): (1, 1),
    }[hook, way]
    for name in ("a", "c", "b")[: 3 if nested else 2]:
        assert trace.count(f"{name}.initialize:in") == trace.count(f"{name}.initialize:out") == 1
        assert trace.count(f"{name}.on_pass:in") == trace.count(f"{name}.on_pass:out") == passes
        assert trace.count(f"{name}.on_batch:in") == trace.count(f"{name}.on_batch:out") == batches
    assert source.taken == batches
    assert state.step == batches


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
@pytest.mark.parametrize(("hook", "way"), PLACES)
def test_rule_5_stop_pass_ends_only_the_pass_that_is_under_way(hook, way, nested):
    trace = []
    source = Source(3)
    stopper = Call(hook, way, lambda state: state.stop_pass("next, please"))
    inner = Runner(Recorder("b", trace), stopper) if nested else stopper
    state = Runner(Recorder("a", trace), source, inner).run(passes=2)

    batches = {("on_pass", "in"): 0, ("on_batch", "in"): 2, ("on_batch", "out"): 2}.get((hook, way), 6)
    assert trace.count("a.on_pass:in") == trace.count("a.on_pass:out") == 2
    assert trace.count("a.on_batch:in") == trace.count("a.on_batch:out") == source.taken == batches
    assert state.stopped is None
    assert not state.pass_cut
    assert state.pass_id == 2


def test_rule_5_the_first_reason_is_kept():
    def ask(state):
        state.stop_pass("pass")
        state.stop("first")
        state.stop("second")
        state.stop_pass("third")

    state = Runner(Batches(2), Call("on_batch", "in", ask)).run(passes=1)
    assert (state.stopped, state.pass_stopped) == ("first", "pass")


def test_rule_5_the_reason_to_stop_a_pass_is_forgotten_with_the_next_pass():
    reasons = []
    stop_first = Call("on_batch", "in", lambda state: state.stop_pass("once") if state.pass_id == 0 else None)
    note = Call("on_pass", "out", lambda state: reasons.append(state.pass_stopped))
    assert Runner(note, Batches(3), stop_first).run(passes=2).step == 1 + 3
    assert reasons == ["once", None]


def test_rule_5_the_inside_still_runs_in_the_batch_that_stops():
    trace = []
    Runner(Batches(3), Call("on_batch", "in", lambda state: state.stop("now")), Recorder("a", trace)).run(passes=1)
    assert trace.count("a.on_batch:out") == 1


def test_rule_5_a_stop_in_an_inner_run_ends_the_inner_run_alone():
    test = Runner(Batches(5), Call("on_batch", "in", lambda state: state.stop("test over")))
    state = Runner(Batches(4), RunsInside(test)).run(passes=1)
    assert state.stopped is None
    assert state.step == 4


# -- 6: a runner in a runner -------------------------------------------------------------------------------------------


def test_rule_6_nested_batch_rings_wind_and_unwind_before_the_outer_onion_goes_further_in():
    trace = []
    Runner(Batches(1), Runner(Recorder("a", trace)), Runner(Recorder("b", trace))).run(passes=1)
    batch = [entry for entry in trace if "on_batch" in entry]
    assert batch == ["a.on_batch:in", "a.on_batch:out", "b.on_batch:in", "b.on_batch:out"]


def test_rule_6_nested_scopes_stay_open_around_what_stands_further_in():
    trace = []
    Runner(Runner(Recorder("a", trace), Batches(1)), Recorder("b", trace)).run(passes=1)
    assert trace[:3] == ["a.initialize:in", "b.initialize:in", "a.on_pass:in"]
    assert trace[-3:] == ["a.on_pass:out", "b.initialize:out", "a.initialize:out"]


def test_rule_6_all_depths_see_one_state():
    states = set()
    look = [Call("on_batch", "in", lambda state: states.add(id(state))) for _ in range(3)]
    state = Runner(Batches(2), look[0], Runner(look[1], Runner(look[2]))).run(passes=1)
    assert states == {id(state)}


def test_rule_6_the_step_counts_at_the_outermost_center_alone():
    """To rings of nested runners, on both ways, the batch under way does not count yet."""
    steps = []
    note = [Call("on_batch", way, lambda state: steps.append(state.step)) for way in ("in", "out")]
    state = Runner(Batches(2), Runner(*note), Runner(Yields(3))).run(passes=1)
    assert steps == [0, 0, 1, 1]
    assert state.step == 2


# -- 7: a runner run from a hook, and runners made from runners (more in test_tree.py) ---------------------------------


def test_rule_7_an_inner_run_has_a_state_of_its_own_whose_parent_is_the_outer_one():
    parents = []
    test = Runner(Batches(2), Call("on_batch", "in", lambda state: parents.append(state.parent)))
    state = Runner(Batches(1), RunsInside(test)).run(passes=1)
    assert parents == [state, state]
    assert state.parent is None
    assert (state.step, state.batch) == (1, 0)


def test_rule_7_a_test_onion_is_a_training_onion_with_rings_left_out_and_replaced():
    trace = []
    data, updater, machine, forward = recorders(trace, ["data", "updater", "machine", "forward"])
    train = Runner(Batches(1), data, updater, machine)
    train.without("updater").replace("machine", forward).run(passes=1)
    assert [entry for entry in trace if "on_batch" in entry] == [
        "data.on_batch:in",
        "forward.on_batch:in",
        "forward.on_batch:out",
        "data.on_batch:out",
    ]


# -- 8: with runner ----------------------------------------------------------------------------------------------------


def test_rule_8_with_holds_the_initialize_scope_open_around_passes_that_the_body_runs():
    trace = []
    runner = Runner(Recorder("a", trace), Batches(1))
    with runner as entered:
        assert entered is runner
        assert trace == ["a.initialize:in"]
        first = runner.run_pass()
        trace.append("body")
        second = runner.run_pass()
    assert first is second
    assert (first.pass_id, first.step) == (2, 2)
    one_pass = ["a.on_pass:in", "a.on_batch:in", "a.on_batch:out", "a.on_pass:out"]
    assert trace == ["a.initialize:in", *one_pass, "body", *one_pass, "a.initialize:out"]


# -- 9: objects go into constructors, the state holds only what flows --------------------------------------------------


def test_rule_9_two_items_share_an_object_by_holding_it():
    class Adds(RunnerItem):
        def __init__(self, shared):
            self.shared = shared

        def on_batch(self, state):
            self.shared.append(state.batch)

    shared = []
    Runner(Batches(2), Adds(shared), Adds(shared)).run(passes=1)
    assert shared == [0, 0, 1, 1]


def test_rule_9_a_new_run_begins_with_a_new_state():
    runner = Runner(Batches(3), Call("on_batch", "in", lambda state: state.report({"seen": 1.0})))
    first, second = runner.run(passes=1), runner.run(passes=1)
    assert first is not second
    assert first.metrics is not second.metrics
    assert (second.pass_id, second.step) == (1, 3)


# -- 10: hooks are composed once ---------------------------------------------------------------------------------------


def test_rule_10_hooks_are_looked_up_when_the_runner_is_built_and_never_again():
    looked_up = []

    class Watched(RunnerItem):
        def __getattribute__(self, name):
            if name in ("initialize", "on_pass", "on_batch"):
                looked_up.append(name)
            return super().__getattribute__(name)

        def on_batch(self, state):
            yield

    runner = Runner(Batches(10), Watched())
    assert looked_up
    looked_up.clear()
    runner.run(passes=3)
    assert looked_up == []


def test_rule_10_a_hook_that_is_changed_after_the_building_does_not_change_the_onion():
    trace = []
    item = Recorder("a", trace)
    runner = Runner(Batches(1), item)
    item.on_batch = lambda state: trace.append("changed")
    runner.run(passes=1)
    assert "changed" not in trace
    Runner(Batches(1), item).run(passes=1)
    assert "changed" in trace


@pytest.mark.parametrize("depth", [1, 10])
def test_rule_10_a_batch_pays_the_hook_and_one_call_a_ring(depth):
    """Python counts a generator twice: it is entered and resumed."""

    class Work(RunnerItem):
        def on_batch(self, state):
            pass

    def calls(batches, *items):
        runner = Runner(Batches(batches), *items)
        return python_calls(lambda: runner.run(passes=1))

    empty = calls(101) - calls(1)
    assert empty == 100
    plain = [Work() for _ in range(depth)]
    assert calls(101, *plain) - calls(1, *plain) - empty == 100 * depth * (1 + 1)
    rings = [Yields(1) for _ in range(depth)]
    assert calls(101, *rings) - calls(1, *rings) - empty == 100 * depth * (2 + 1)


def test_rule_10_a_million_batches_take_no_memory():
    blocks = []

    class Look(RunnerItem):
        def on_batch(self, state):
            yield
            if state.step in (1_000, 1_000_000):
                blocks.append(sys.getallocatedblocks())

    state = Runner(Batches(1_000_000), Look()).run(passes=1)
    assert state.step == 1_000_000
    assert abs(blocks[1] - blocks[0]) < 500


def test_the_state_is_the_last_ring_left_it():
    state = Runner(Batches(["x", "y"]), Call("initialize", "out", lambda state: state.report({"end": 1.0}))).run(1)
    assert isinstance(state, State)
    assert (state.batch, state.metrics) == ("y", {"end": 1.0})
