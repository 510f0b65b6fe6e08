"""The composing core: errors at every place of every onion, retries, and random onions against a plain reference."""

import gc
import sys
import weakref
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion import CompositionError, HookError, Observer, Runner, RunnerItem, Tester
from onion.engine.item import HOOKS
from onion.engine.rings import compose
from onion.testing import Batches, Failing, PlannedError, Recorder
from tests.rings import Forgive


def balanced(trace):
    """Check that ways in and out are properly nested and every ring left once; return the order of leaving by errors.

    After the first error no ring may be entered and none may leave normally.
    """
    opened, errors = [], []
    for entry in trace:
        ring, _, way = entry.rpartition(":")
        if way == "in":
            assert not errors, f"{ring} was entered after an error"
            opened.append(ring)
        else:
            assert opened, f"{ring} left, but no ring is open"
            assert opened.pop() == ring, f"{ring} left before the rings inside it, or was never entered"
            assert way == "error" or not errors, f"{ring} left normally after an error"
            errors += [ring] * (way == "error")
    assert opened == [], "these rings were never left"
    return errors


# -- onions against plain recursion: an error at every place -----------------------------------------------------------


class Tape:
    """What happens in a run; one chosen event fails instead."""

    def __init__(self, fails_at):
        self.fails_at, self.events, self.count = fails_at, [], 0

    def record(self, event):
        self.events.append(event)

    def may_fail(self):
        self.count += 1
        if self.count == self.fails_at:
            raise PlannedError(str(self.count))


class Node(RunnerItem):
    """A ring that can fail on its way in and before leaving, and yields so many times a batch; -1: a plain function."""

    def __init__(self, name, yields, tape):
        self.name, self.yields, self.tape = name, yields, tape
        self.on_batch = self.plain if yields < 0 else self.ring

    def initialize(self, state):
        yield from self.surround("initialize", 1)

    def on_pass(self, state):
        yield from self.surround("on_pass", 1)

    def plain(self, state):
        self.tape.may_fail()

    def ring(self, state):
        yield from self.surround("on_batch", self.yields)

    def surround(self, hook, yields):
        self.tape.may_fail()
        self.tape.record(f"{self.name}.{hook}:in")
        try:
            for _ in range(yields):
                yield
                self.tape.may_fail()
        except PlannedError:
            self.tape.record(f"{self.name}.{hook}:error")
            raise
        self.tape.record(f"{self.name}.{hook}:out")


def surround(ring, yields, tape, inside):
    """Do what a node does, as plain code."""
    tape.may_fail()
    if yields < 0:
        inside()
        return
    tape.record(f"{ring}:in")
    try:
        for _ in range(yields):
            inside()
            tape.may_fail()
    except PlannedError:
        tape.record(f"{ring}:error")
        raise
    tape.record(f"{ring}:out")


def scope(hook, nodes, tape, inside):
    """Surround the inside by the rings of a run or a pass, those of nested onions too."""
    for name in reversed(list(names(nodes))):
        inside = partial(surround, f"{name}.{hook}", 1, tape, inside)
    inside()


def batch(nodes, tape):
    """Run a batch through a tree of nodes the obvious way: by recursion."""
    if nodes:
        (name, yields), *rest = nodes
        if isinstance(yields, list):
            batch(yields, tape)
            batch(rest, tape)
        else:
            surround(f"{name}.on_batch", yields, tape, lambda: batch(rest, tape))


def numbered(shape, counter):
    """Give every node of a shape a name; a nested list stays a list."""
    return [(f"n{next(counter)}", numbered(node, counter) if isinstance(node, list) else node) for node in shape]


def names(nodes):
    for name, yields in nodes:
        yield from names(yields) if isinstance(yields, list) else [name]


def onion(nodes, tape):
    return Runner(
        *[onion(yields, tape) if isinstance(yields, list) else Node(name, yields, tape) for name, yields in nodes]
    )


def check_against_recursion(shape, fails_at, batches=2, passes=1):
    """Run an onion in which one event fails; return the number of events."""
    nodes = numbered(shape, count())
    expected, tape = Tape(fails_at), Tape(fails_at)

    def one_pass():
        for _ in range(batches):
            batch(nodes, expected)

    def run():
        for _ in range(passes):
            scope("on_pass", nodes, expected, one_pass)

    ends = nullcontext()
    try:
        scope("initialize", nodes, expected, run)
    except PlannedError as error:
        ends = pytest.raises(PlannedError, match=f"^{error}$")
    with ends:
        Runner(Batches(batches), *onion(nodes, tape).items).run(passes=passes)
    assert tape.events == expected.events
    assert tape.count == expected.count
    balanced(tape.events)
    return tape.count


SHAPES = {
    "flat": [1, 1, 1],
    "gan": [1, [1, 1], [1, 1], 1],
    "deep": [1, [1, [1, [1]], 1], 1],
    "of all kinds": [2, -1, [1, 0, 1], 1],
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_an_error_at_any_place_leaves_each_entered_ring_once_innermost_first_and_no_other(shape):
    for fails_at in range(1, check_against_recursion(shape, 0) + 1):
        check_against_recursion(shape, fails_at)


behaviours = st.sampled_from([-1, 0, 1, 1, 1, 2])
shapes = st.recursive(
    st.lists(behaviours, max_size=4), lambda inner: st.lists(behaviours | inner, max_size=4), max_leaves=5
)


@settings(max_examples=300)
@given(shape=shapes, batches=st.integers(1, 2), passes=st.integers(1, 2), fails_at=st.integers(0, 60))
def test_random_onions_do_what_plain_recursion_does(shape, batches, passes, fails_at):
    """Random trees of plain, single, doubling and skipping rings with one random failure: the very same trace."""
    check_against_recursion(shape, fails_at, batches, passes)


def test_no_hooks_cost_nothing():
    def center(state):
        pass

    assert compose([], center) is center


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("way", ["in", "out"])
def test_an_error_leaves_a_runner_that_can_run_again(hook, way):
    trace = []
    runner = Runner(Recorder("a", trace), Batches(1), Failing(hook, way, times=1))
    with pytest.raises(PlannedError):
        runner.run(passes=1)
    trace.clear()
    assert runner.run(passes=1).step == 1
    assert balanced(trace) == []


# -- the error itself --------------------------------------------------------------------------------------------------


def with_hook(hook, function, name="Item"):
    """Return an item of a new class with one hook."""
    return type(name, (RunnerItem,), {hook: function})()


def raising(error, hook="on_batch"):
    """Return an item that raises an error in a hook."""

    def fail(self, state):
        raise error

    return with_hook(hook, fail)


def batch_entries(trace):
    return [entry for entry in trace if "on_batch" in entry]


class Passing(RunnerItem):
    """Touch an error in the usual ways without keeping it."""

    def initialize(self, state):
        try:
            yield
        except Exception:
            raise

    def on_pass(self, state):
        with ExitStack():
            yield

    def on_batch(self, state):
        try:
            yield
        finally:
            pass


CAUSED = RuntimeError("mine")
CAUSED.__cause__ = StopIteration()
ERRORS = [
    StopIteration("a value"),
    StopAsyncIteration(),
    GeneratorExit(),
    KeyboardInterrupt(),
    SystemExit(3),
    RuntimeError("a real one"),
    RuntimeError("generator raised StopIteration"),
    MemoryError(),
    PlannedError("x"),
]


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("error", [*ERRORS, pytest.param(CAUSED, id="caused by a StopIteration")], ids=repr)
def test_any_error_arrives_unchanged_through_several_rings(hook, error):
    trace, cause = [], error.__cause__
    nested = Runner(Passing(), Recorder("b", trace), raising(error, hook))
    with pytest.raises(type(error)) as caught:
        Runner(Passing(), Recorder("a", trace), Batches(1), nested).run(passes=1)
    assert caught.value is error
    assert error.__cause__ is cause
    assert error.__context__ is None
    assert balanced(trace)[:2] == [f"b.{hook}", f"a.{hook}"]


@pytest.mark.parametrize("error", [PlannedError("inside"), StopIteration("inside")], ids=repr)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_runtime_error_of_a_ring_that_leaves_is_not_taken_for_the_error_inside(hook, error):
    def leave(self, state):
        try:
            yield
        finally:
            raise RuntimeError("while leaving")

    with pytest.raises(RuntimeError, match=r"^while leaving$") as caught:
        Runner(with_hook(hook, leave), Batches(1), raising(error)).run(passes=1)
    assert caught.value.__context__ is error


@pytest.mark.parametrize("error", [StopIteration(), KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_an_error_in_the_body_of_with_arrives_unchanged(error):
    runner = Runner(Passing(), Batches(1), Passing())
    with pytest.raises(type(error)) as caught, runner:
        raise error
    assert caught.value is error


def test_an_error_of_the_batches_passes_the_rings_of_the_pass():
    def broken():
        yield 0
        raise PlannedError("no more")

    trace, data = [], Observer(on_pass_begin=lambda state: setattr(state, "batches", broken()))
    with pytest.raises(PlannedError, match="no more"):
        Runner(Recorder("a", trace), data).run(passes=1)
    assert trace[-3:] == ["a.on_batch:out", "a.on_pass:error", "a.initialize:error"]


# -- errors while leaving ----------------------------------------------------------------------------------------------


def clumsy(name, *hooks):
    """Return an item that fails while leaving, in some hooks; default: in all."""

    def leaving(hook):
        def leave(self, state):
            try:
                yield
            finally:
                raise OSError(f"{name}.{hook}")

        return leave

    return type("Clumsy", (RunnerItem,), {"name": name, **{hook: leaving(hook) for hook in hooks or HOOKS}})()


def chain(error):
    """Return the texts of an error and of those it came from."""
    return [str(error), *chain(error.__context__)] if error else []


@pytest.mark.parametrize("hook", HOOKS)
def test_errors_while_leaving_are_chained_and_the_other_rings_still_leave(hook):
    trace = []
    a, b, c = (Recorder(name, trace) for name in "abc")
    with pytest.raises(OSError) as caught:
        Runner(a, Batches(1), clumsy("x", hook), b, clumsy("y", hook), c, Failing("on_batch")).run(passes=1)
    assert chain(caught.value) == [f"x.{hook}", f"y.{hook}", "on_batch in"]
    assert len(balanced(trace)) == 9


def test_errors_while_leaving_are_chained_across_scopes_and_runners():
    trace = []
    nested = Runner(clumsy("y"), Recorder("b", trace), Failing("on_batch", "out"))
    with pytest.raises(OSError) as caught:
        Runner(Recorder("a", trace), clumsy("x"), Batches(1), nested).run(passes=1)
    assert chain(caught.value) == [*(f"{name}.{hook}" for hook in HOOKS for name in "xy"), "on_batch out"]
    assert len(balanced(trace)) == 6


@pytest.mark.parametrize("hook", HOOKS)
def test_an_error_on_the_way_out_of_one_ring_is_an_error_inside_to_the_rings_around_it(hook):
    trace = []
    with pytest.raises(OSError, match=f"^x.{hook}$"):
        Runner(Recorder("a", trace), Batches(1), clumsy("x", hook), Recorder("b", trace)).run(passes=1)
    assert f"b.{hook}:out" in trace
    assert f"a.{hook}:error" in trace


def test_an_error_instead_of_a_swallowed_one_still_remembers_it():
    def replace(self, state):
        with suppress(PlannedError):
            yield
        raise OSError("instead")

    with pytest.raises(OSError) as caught:
        Runner(Batches(1), with_hook("on_batch", replace), Failing("on_batch")).run(passes=1)
    assert chain(caught.value) == ["instead", "on_batch in"]


# -- swallowing and retrying -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hook", "passes", "batches", "steps"), [("on_batch", 2, 6, 5), ("on_pass", 2, 1 + 3, 3), ("initialize", 1, 1, 0)]
)
def test_a_ring_that_swallows_an_error_ends_its_own_scope_and_the_loop_goes_on(hook, passes, batches, steps):
    trace = []
    failing = Failing("on_batch", step=0, times=1)
    state = Runner(Recorder("a", trace), Forgive(hook), Batches(3), Recorder("b", trace), failing).run(passes=2)
    assert trace.count("a.on_pass:in") == passes
    assert trace.count("a.on_batch:in") == batches
    assert trace.count("a.initialize:out") == trace.count("b.on_batch:error") == 1
    assert state.step == steps


def test_a_swallowed_error_of_the_way_in_skips_what_is_inside():
    trace = []
    runner = Runner(Recorder("a", trace), Forgive("initialize"), Failing("initialize"), Recorder("b", trace))
    assert runner.run(passes=1).step == 0
    assert trace == ["a.initialize:in", "a.initialize:out"]


class Retry(RunnerItem):
    """Run the inside again after a PlannedError, so many times in all."""

    def __init__(self, tries):
        self.tries, self.failures = tries, 0

    def on_batch(self, state):
        for left in reversed(range(self.tries)):
            try:
                yield
                return
            except PlannedError:
                self.failures += 1
                if not left:
                    raise


def test_a_ring_that_yields_again_after_an_error_tries_again_and_the_step_counts_once():
    trace = []
    retry, failing = Retry(5), Failing("on_batch", step=0, times=2)
    state = Runner(Recorder("a", trace), Batches(2), retry, Recorder("b", trace), failing).run(passes=1)
    whole = ["b.on_batch:in", "b.on_batch:out", "a.on_batch:out"]
    failed = ["b.on_batch:in", "b.on_batch:error"]
    assert batch_entries(trace) == ["a.on_batch:in", *failed, *failed, *whole, "a.on_batch:in", *whole]
    assert retry.failures == 2
    assert state.step == 2


def test_a_batch_that_fails_on_the_way_out_and_is_tried_again_counts_once():
    state = Runner(Batches(2), Retry(5), Failing("on_batch", "out", step=0, times=1)).run(passes=1)
    assert state.step == 2


def test_retries_of_two_rings_multiply_and_raise_the_last_error():
    outer, inner = Retry(2), Retry(3)
    with pytest.raises(PlannedError) as caught:
        Runner(Batches(1), outer, inner, Failing("on_batch")).run(passes=1)
    assert (outer.failures, inner.failures) == (2, 6)
    assert caught.value.__context__ is None


def test_a_retry_after_running_out_of_memory_finds_the_memory_of_the_failed_try_free():
    """Without the help of the garbage collector: no ring inside and not the engine holds the error any more."""

    class Activations:
        pass

    def work(state):
        alive.append([activation() is not None for activation in kept])
        activations = Activations()
        kept.append(weakref.ref(activations))
        if len(kept) < 4:
            raise MemoryError

    def try_again(self, state):
        while len(kept) < 4:
            with suppress(MemoryError):
                yield

    kept, alive = [], []
    rings = with_hook("on_batch", try_again), Recorder("a"), Observer(on_batch_begin=work), Recorder("b")
    gc.disable()
    try:
        Runner(Batches(1), *rings).run(passes=1)
    finally:
        gc.enable()
    assert alive == [[False] * n for n in range(4)]


# -- what a hook must not do -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("answer", [0, False, "text", [], object()], ids=lambda answer: type(answer).__name__)
def test_a_hook_that_returns_a_value_is_told_where_to_put_it(hook, answer):
    def give(self, state):
        return answer

    trace = []
    with pytest.raises(HookError) as caught:
        Runner(Recorder("a", trace), Batches(1), with_hook(hook, give, "Returns")).run(passes=1)
    assert str(caught.value) == (
        f"returns (Returns).give returned {type(answer).__name__}; a hook returns nothing: put results on the state."
    )
    assert balanced(trace)[0] == f"a.{hook}"


@pytest.mark.parametrize("hook", HOOKS)
def test_an_error_about_a_function_that_was_put_on_an_item_names_the_function(hook):
    def answers(state):
        return 1

    item = RunnerItem()
    setattr(item, hook, answers)
    with pytest.raises(HookError, match=r"names_the_function\.<locals>\.answers returned int; a hook returns nothing"):
        Runner(Batches(1), item).run(passes=1)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_plain_hook_that_returns_a_generator_is_told_to_delegate(hook):
    begun = []

    def generator():
        begun.append(True)
        yield

    with pytest.raises(HookError, match=r"returned a generator that would never run; write 'yield from"):
        Runner(Batches(1), with_hook(hook, lambda self, state: generator())).run(passes=1)
    assert begun == []


@pytest.mark.parametrize("hook", HOOKS)
def test_coroutine_hooks_are_refused_when_the_runner_is_built_with_its_drawing(hook):
    async def coroutine(self, state):
        pass

    async def generator(self, state):
        yield

    said = r"^waits \(Waits\).* is a coroutine; .*drop the 'async'\."
    for function in (coroutine, generator):
        with pytest.raises(CompositionError, match=said) as caught:
            Runner(Batches(1), Runner(with_hook(hook, function, "Waits")))
        assert "╭" in str(caught.value) or "waits  Waits()" in str(caught.value)


@pytest.mark.parametrize("hook", ["initialize", "on_pass"])
def test_a_second_yield_closes_the_ring_so_that_its_finally_runs(hook):
    seen = []

    def twice(self, state):
        yield
        try:
            yield
        finally:
            seen.append("closed")

    with pytest.raises(HookError, match="yielded a second time"):
        Runner(Batches(1), with_hook(hook, twice)).run(passes=1)
    assert seen == ["closed"]


# -- many rings --------------------------------------------------------------------------------------------------------


@pytest.fixture
def recursion_limit():
    before = sys.getrecursionlimit()
    yield before
    sys.setrecursionlimit(before)


class Depth(RunnerItem):
    """A ring that counts how many are entered."""

    entered = deepest = 0

    def on_batch(self, state):
        Depth.entered += 1
        Depth.deepest = max(Depth.deepest, Depth.entered)
        try:
            yield
        finally:
            Depth.entered -= 1


@pytest.mark.parametrize("wrong", [False, True])
def test_a_thousand_rings_and_more(recursion_limit, wrong):
    Depth.deepest, inmost = 0, [Failing("on_batch", "in")] if wrong else []
    runner = Runner(Batches(2), *(Depth() for _ in range(1500)), *inmost)
    with pytest.raises(PlannedError) if wrong else nullcontext():
        runner.run(passes=1)
    assert (Depth.entered, Depth.deepest) == (0, 1500)


@pytest.mark.parametrize("wrong", [False, True])
def test_after_a_run_the_recursion_limit_is_what_it_was(recursion_limit, wrong):
    limits = []
    test = Runner(Batches(1), Observer(on_batch_begin=lambda state: limits.append(sys.getrecursionlimit())))
    inside = [Failing("on_batch", "in", 1)] if wrong else []
    runner = Runner(Batches(2), *(Depth() for _ in range(600)), Tester(test, every=1), *inside)
    assert sys.getrecursionlimit() == recursion_limit
    with pytest.raises(PlannedError) if wrong else nullcontext():
        runner.run(passes=1)
    assert min(limits) > 1600
    assert sys.getrecursionlimit() == recursion_limit
    with runner.without(Failing) if wrong else runner as opened:
        opened.run_pass()
        assert sys.getrecursionlimit() == recursion_limit


def test_the_innermost_ring_has_as_many_calls_left_as_without_an_onion(recursion_limit):
    def deep(calls):
        return deep(calls - 1) if calls else "down"

    def go(state):
        found.append(deep(980))

    found, inner = [], Runner(*(Depth() for _ in range(200)), Observer(on_batch_begin=go))
    for runner in (
        Runner(Batches(1), inner),
        Runner(Batches(1), Runner(*(Depth() for _ in range(200)), Runner(inner))),
    ):
        sys.setrecursionlimit(1000)
        runner.run(passes=1)
        assert sys.getrecursionlimit() == 1000
    assert found == ["down"] * 2
