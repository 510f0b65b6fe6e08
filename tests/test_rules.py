"""The contract of the ring: the ten rules of the design, a group of tests each, and whole traces written out."""

import gc
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
        yield from [None] * self.times


class Call(RunnerItem):
    """Call a function of the state at one moment of every run, pass or batch."""

    def __init__(self, hook, way, function):
        def ring(state):
            if way == "in":
                function(state)
            yield
            if way == "out":
                function(state)

        setattr(self, hook, ring)


class RunsInside(RunnerItem):
    """Run another onion on the way out of every batch, as Tester does."""

    def __init__(self, runner):
        self.runner = runner

    def on_batch(self, state):
        yield
        self.runner.run(passes=1, parent=state)


class Source(RunnerItem):
    """Give the numbers below n, and count how many were taken."""

    def __init__(self, n):
        self.n, self.taken = n, 0

    def on_pass(self, state):
        state.batches = map(self._take, range(self.n))

    def _take(self, number):
        self.taken += 1
        return number


def recorders(trace, names):
    return [Recorder(name, trace) for name in names]


def of_batches(trace):
    return [entry for entry in trace if "on_batch" in entry]


# -- whole traces ------------------------------------------------------------------------------------------------------


TRACES = {
    "a runner": (
        lambda ring: Runner(ring("a"), Batches(2), ring("b")),
        2,
        """
        a.initialize:in b.initialize:in
            a.on_pass:in b.on_pass:in
                a.on_batch:in b.on_batch:in b.on_batch:out a.on_batch:out
                a.on_batch:in b.on_batch:in b.on_batch:out a.on_batch:out
            b.on_pass:out a.on_pass:out
            a.on_pass:in b.on_pass:in
                a.on_batch:in b.on_batch:in b.on_batch:out a.on_batch:out
                a.on_batch:in b.on_batch:in b.on_batch:out a.on_batch:out
            b.on_pass:out a.on_pass:out
        b.initialize:out a.initialize:out
        """,
    ),
    # The inner batch rings end before the outer runner continues; the inner scopes stay open around what follows.
    "a nested runner": (
        lambda ring: Runner(Batches(1), ring("a"), Runner(ring("b")), ring("c")),
        1,
        """
        a.initialize:in b.initialize:in c.initialize:in
            a.on_pass:in b.on_pass:in c.on_pass:in
                a.on_batch:in
                    b.on_batch:in b.on_batch:out
                    c.on_batch:in c.on_batch:out
                a.on_batch:out
            c.on_pass:out b.on_pass:out a.on_pass:out
        c.initialize:out b.initialize:out a.initialize:out
        """,
    ),
    "a GAN": (
        lambda ring: Runner(Batches(2), Runner(ring("d_updater"), ring("d")), Runner(ring("g_updater"), ring("g"))),
        1,
        """
        d_updater.initialize:in d.initialize:in g_updater.initialize:in g.initialize:in
            d_updater.on_pass:in d.on_pass:in g_updater.on_pass:in g.on_pass:in
                d_updater.on_batch:in d.on_batch:in d.on_batch:out d_updater.on_batch:out
                g_updater.on_batch:in g.on_batch:in g.on_batch:out g_updater.on_batch:out
                d_updater.on_batch:in d.on_batch:in d.on_batch:out d_updater.on_batch:out
                g_updater.on_batch:in g.on_batch:in g.on_batch:out g_updater.on_batch:out
            g.on_pass:out g_updater.on_pass:out d.on_pass:out d_updater.on_pass:out
        g.initialize:out g_updater.initialize:out d.initialize:out d_updater.initialize:out
        """,
    ),
    "two levels of nesting": (
        lambda ring: Runner(Batches(1), ring("a"), Runner(ring("b"), Runner(ring("c")), ring("d")), ring("e")),
        1,
        """
        a.initialize:in b.initialize:in c.initialize:in d.initialize:in e.initialize:in
            a.on_pass:in b.on_pass:in c.on_pass:in d.on_pass:in e.on_pass:in
                a.on_batch:in
                    b.on_batch:in c.on_batch:in c.on_batch:out d.on_batch:in d.on_batch:out b.on_batch:out
                    e.on_batch:in e.on_batch:out
                a.on_batch:out
            e.on_pass:out d.on_pass:out c.on_pass:out b.on_pass:out a.on_pass:out
        e.initialize:out d.initialize:out c.initialize:out b.initialize:out a.initialize:out
        """,
    ),
    "a runner that a hook of another runs": (
        lambda ring: Runner(ring("a"), Batches(1), RunsInside(Runner(Batches(2), ring("test"))), ring("b")),
        1,
        """
        a.initialize:in b.initialize:in
            a.on_pass:in b.on_pass:in
                a.on_batch:in b.on_batch:in b.on_batch:out
                    test.initialize:in
                        test.on_pass:in
                            test.on_batch:in test.on_batch:out
                            test.on_batch:in test.on_batch:out
                        test.on_pass:out
                    test.initialize:out
                a.on_batch:out
            b.on_pass:out a.on_pass:out
        b.initialize:out a.initialize:out
        """,
    ),
    # Rule 1: a hook without a yield runs on the way in only.
    "hooks without a yield": (
        lambda ring: Runner(ring("a"), Plain(ring("plain").trace), Batches(1), ring("b")),
        1,
        """
        a.initialize:in plain.initialize b.initialize:in
            a.on_pass:in plain.on_pass b.on_pass:in
                a.on_batch:in plain.on_batch b.on_batch:in b.on_batch:out a.on_batch:out
            b.on_pass:out a.on_pass:out
        b.initialize:out a.initialize:out
        """,
    ),
}


@pytest.mark.parametrize("name", TRACES)
def test_whole_traces(name):
    compose, passes, expected = TRACES[name]
    trace = []
    compose(lambda ring: Recorder(ring, trace)).run(passes=passes)
    assert trace == expected.split()


# -- 1: a hook without a yield runs on the way in; one that is not overridden costs nothing ----------------------------


def test_rule_1_a_hook_that_is_not_overridden_costs_not_one_call():
    bare = Runner(Batches(50), Yields(1))
    crowded = Runner(RunnerItem(), Batches(50), RunnerItem(), Yields(1), *[RunnerItem() for _ in range(20)])
    assert python_calls(lambda: crowded.run(passes=2)) == python_calls(lambda: bare.run(passes=2))


# -- 2: on_batch may yield any number of times; each yield runs the inside once ----------------------------------------


@pytest.mark.parametrize("times", [0, 1, 2, 5])
def test_rule_2_each_yield_of_on_batch_runs_the_inside_once(times):
    trace = []
    Runner(Recorder("a", trace), Batches(1), Yields(times), Recorder("b", trace)).run(passes=1)
    assert of_batches(trace) == ["a.on_batch:in", *["b.on_batch:in", "b.on_batch:out"] * times, "a.on_batch:out"]


def test_rule_2_repetitions_multiply_and_a_repeated_batch_is_one_step_a_skipped_one_none():
    trace = []
    state = Runner(Batches(3), Yields(2), Yields(3), Recorder("a", trace)).run(passes=1)
    assert trace.count("a.on_batch:in") == trace.count("a.on_batch:out") == 3 * 6
    assert state.step == 3

    class Odd(RunnerItem):
        def on_batch(self, state):
            if state.batch % 2:
                yield

    trace = []
    assert Runner(Batches(5), Odd(), Recorder("a", trace)).run(passes=1).step == trace.count("a.on_batch:in") == 2


def test_rule_2_a_nested_runner_that_skips_does_not_skip_what_follows_it():
    trace = []
    Runner(Batches(1), Runner(Yields(0), Recorder("a", trace)), Recorder("b", trace)).run(passes=1)
    assert of_batches(trace) == ["b.on_batch:in", "b.on_batch:out"]


# -- 3: initialize and on_pass yield exactly once ----------------------------------------------------------------------


class Wrong(RunnerItem):
    """Yield in one scope another number of times than once."""

    def __init__(self, hook, yields):
        self.yields = {"initialize": 1, "on_pass": 1, hook: yields}

    def initialize(self, state):
        yield from [None] * self.yields["initialize"]

    def on_pass(self, state):
        yield from [None] * self.yields["on_pass"]


@pytest.mark.parametrize("hook", ["initialize", "on_pass"])
@pytest.mark.parametrize(
    ("yields", "says"),
    [
        (0, "ended without a yield; in this hook it must yield exactly once."),
        (2, "yielded a second time; only on_batch may run its inside more than once."),
        (3, "yielded a second time; only on_batch may run its inside more than once."),
    ],
)
def test_rule_3_any_other_number_of_yields_is_an_error_and_the_rings_outside_leave_by_it(hook, yields, says):
    trace, item = [], Wrong(hook, yields)
    item.name = "mine"
    with pytest.raises(HookError) as caught:
        Runner(Recorder("a", trace), item, Batches(1), Recorder("b", trace)).run(passes=1)
    assert str(caught.value) == f"mine (Wrong).{hook} {says}"
    assert [entry for entry in trace if entry.endswith(":error")] == {
        "initialize": ["a.initialize:error"],
        "on_pass": ["a.on_pass:error", "b.initialize:error", "a.initialize:error"],
    }[hook]
    assert (f"b.{hook}:out" in trace) == (yields > 1)


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
    entered = "a.on_batch:in b.on_batch:in c.on_batch:in c.on_batch:out "  # here it fails; d is not entered
    left = ["b.on_batch", "a.on_batch", *(f"{ring}.{hook}" for hook in ("on_pass", "initialize") for ring in "dcba")]
    assert trace[-14:] == [*entered.split(), *(f"{ring}:error" for ring in left)]
    trace = []
    test = Runner(Recorder("test", trace), Batches(1), Failing("on_pass", "out"))
    with pytest.raises(PlannedError):
        Runner(Recorder("a", trace), Batches(1), RunsInside(test)).run(passes=1)
    left = ["test.on_pass", "test.initialize", "a.on_batch", "a.on_pass", "a.initialize"]
    assert trace[-5:] == [f"{ring}:error" for ring in left]


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


# -- 5: stopping -------------------------------------------------------------------------------------------------------


def entered(trace, name):
    """How often a ring was entered around run, passes and batches; each time it left normally."""
    assert not [entry for entry in trace if entry.endswith(":error")]
    hooks = [f"{name}.{hook}" for hook in ("initialize", "on_pass", "on_batch")]
    counts = [trace.count(f"{hook}:in") for hook in hooks]
    assert counts == [trace.count(f"{hook}:out") for hook in hooks]
    return counts


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
@pytest.mark.parametrize(
    ("hook", "way", "passes", "batches", "of_two_passes"),
    [
        ("initialize", "in", 0, 0, 6),
        ("initialize", "out", 3, 15, 6),
        ("on_pass", "in", 1, 0, 0),
        ("on_pass", "out", 1, 5, 6),
        ("on_batch", "in", 1, 1, 2),
        ("on_batch", "out", 1, 1, 2),
    ],
)
def test_rule_5_stops_end_run_or_pass_from_every_place_and_every_ring_leaves_normally(
    hook, way, passes, batches, of_two_passes, nested
):
    def run(stop, source, passes):
        trace = []
        stopper = Call(hook, way, stop)
        inner = Runner(Recorder("b", trace), stopper) if nested else stopper
        return Runner(Recorder("a", trace), source, inner, Recorder("c", trace)).run(passes=passes), trace

    source = Source(5)
    state, trace = run(lambda state: state.stop("enough"), source, 3)
    assert (state.stopped, source.taken, state.step) == ("enough", batches, batches)
    assert all(entered(trace, name) == [1, passes, batches] for name in ("acb" if nested else "ac"))

    source = Source(3)
    state, trace = run(lambda state: state.stop_pass("next, please"), source, 2)
    assert entered(trace, "a") == [1, 2, source.taken] == [1, 2, of_two_passes]
    assert (state.stopped, state.pass_cut, state.pass_id) == (None, False, 2)


def test_rule_5_the_first_reason_is_kept_and_that_of_a_pass_forgotten_with_the_next():
    def ask(state):
        state.stop_pass("pass")
        state.stop("first")
        state.stop("second")
        state.stop_pass("third")

    state = Runner(Batches(2), Call("on_batch", "in", ask)).run(passes=1)
    assert (state.stopped, state.pass_stopped) == ("first", "pass")
    reasons = []
    stop_first = Call("on_batch", "in", lambda state: state.stop_pass("once") if state.pass_id == 0 else None)
    note = Call("on_pass", "out", lambda state: reasons.append(state.pass_stopped))
    assert Runner(note, Batches(3), stop_first).run(passes=2).step == 1 + 3
    assert reasons == ["once", None]


def test_rule_5_a_stop_in_an_inner_run_ends_the_inner_run_alone():
    test = Runner(Batches(5), Call("on_batch", "in", lambda state: state.stop("test over")))
    state = Runner(Batches(4), RunsInside(test)).run(passes=1)
    assert state.stopped is None
    assert state.step == 4


# -- 6: a runner in a runner -------------------------------------------------------------------------------------------


def test_rule_6_all_depths_see_one_state_whose_step_counts_at_the_outermost_center():
    states = set()
    look = [Call("on_batch", "in", lambda state: states.add(id(state))) for _ in range(3)]
    state = Runner(Batches(2), look[0], Runner(look[1], Runner(look[2]))).run(passes=1)
    assert states == {id(state)}
    # To rings of nested runners, on both ways, the batch under way does not count yet.
    steps = []
    note = [Call("on_batch", way, lambda state: steps.append(state.step)) for way in ("in", "out")]
    state = Runner(Batches(2), Runner(*note), Runner(Yields(3))).run(passes=1)
    assert steps == [0, 0, 1, 1]
    assert state.step == 2


# -- 7: a runner run from a hook ----------------------------------------------------------------------------------


def test_rule_7_an_inner_run_has_a_state_of_its_own_whose_parent_is_the_outer_one():
    parents = []
    test = Runner(Batches(2), Call("on_batch", "in", lambda state: parents.append(state.parent)))
    state = Runner(Batches(1), RunsInside(test)).run(passes=1)
    assert parents == [state, state]
    assert state.parent is None
    assert (state.step, state.batch) == (1, 0)


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


def test_rule_9_items_share_an_object_by_holding_it_and_each_run_has_a_new_state():
    class Adds(RunnerItem):
        def __init__(self, shared):
            self.shared = shared

        def on_batch(self, state):
            self.shared.append(state.batch)

    shared = []
    Runner(Batches(2), Adds(shared), Adds(shared)).run(passes=1)
    assert shared == [0, 0, 1, 1]
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

    gc.collect()  # what other tests left would go meanwhile
    state = Runner(Batches(1_000_000), Look()).run(passes=1)
    assert state.step == 1_000_000
    assert blocks[1] - blocks[0] < 500


def test_the_state_is_the_last_ring_left_it():
    state = Runner(Batches(["x", "y"]), Call("initialize", "out", lambda state: state.report({"end": 1.0}))).run(1)
    assert isinstance(state, State)
    assert (state.batch, state.metrics) == ("y", {"end": 1.0})
