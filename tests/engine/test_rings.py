"""The composing core: errors at every place of every onion, retries, and random onions against a plain reference."""

import gc
import sys
import weakref
from contextlib import ExitStack, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion import CompositionError, HookError, Observer, Runner, RunnerItem, State, Tester
from onion.engine.rings import compose, enter, hold
from onion.testing import Batches, Failing, PlannedError, Recorder

HOOKS = ("initialize", "on_pass", "on_batch")


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


# -- the matrix: every position x every hook x way in, way out ---------------------------------------------------------

FLAT = ["a", "b", "c"]
GAN = ["a", ["b", "c"], ["d", "e"], "f"]
DEEP = ["a", ["b", ["c", ["d"]], "e"], "f"]
SHAPES = {"flat": FLAT, "gan": GAN, "deep": DEEP}


def positions(shape, path=()):
    """Give every place where an item can be put into a shape, as a path of indices."""
    for place, node in enumerate(shape):
        yield (*path, place)
        if isinstance(node, list):
            yield from positions(node, (*path, place))
    yield (*path, len(shape))


def put(shape, path, item):
    """Return a shape with an item put in at a path."""
    place, *deeper = path
    if deeper:
        return [*shape[:place], put(shape[place], deeper, item), *shape[place + 1 :]]
    return [*shape[:place], item, *shape[place:]]


def build(shape, trace):
    """Build a Runner of a shape: a string is a Recorder, a list a nested runner."""
    return Runner(
        *[
            build(node, trace) if isinstance(node, list) else Recorder(node, trace) if isinstance(node, str) else node
            for node in shape
        ]
    )


def flattened(shape):
    """Give all nodes in the order in which their scopes are entered."""
    for node in shape:
        yield from flattened(node) if isinstance(node, list) else [node]


def before(shape, item):
    """Return the recorders whose initialize and on_pass surround an item's."""
    nodes = list(flattened(shape))
    return [node for node in nodes[: nodes.index(item)] if isinstance(node, str)]


def around(shape, item):
    """Return the recorders whose on_batch surrounds an item's: not those of nested runners that are over."""
    rings = []
    for node in shape:
        if node is item:
            return rings
        if isinstance(node, list) and item in flattened(node):
            return rings + around(node, item)
        rings += [node] if isinstance(node, str) else []
    raise AssertionError("the item is not there")


MATRIX = [
    pytest.param(shape, path, hook, way, id=f"{name}-{'.'.join(map(str, path))}-{hook}-{way}")
    for name, shape in SHAPES.items()
    for path in positions(shape)
    for hook in HOOKS
    for way in ("in", "out")
]


@pytest.mark.parametrize(("shape", "path", "hook", "way"), MATRIX)
def test_an_error_leaves_each_entered_ring_once_innermost_first_and_no_other(shape, path, hook, way):
    whole = []
    Runner(Batches(2), build(shape, whole)).run(passes=1)

    trace = []
    item = Failing(hook, way)
    shape = put(shape, path, item)
    runner = Runner(Batches(2), *build(shape, trace).items)
    with pytest.raises(PlannedError, match=f"^{hook} {way}$"):
        runner.run(passes=1)

    recorders = [node for node in flattened(shape) if node is not item]
    open_rings = {
        "initialize": [f"{name}.initialize" for name in before(shape, item)],
        "on_pass": [f"{name}.initialize" for name in recorders] + [f"{name}.on_pass" for name in before(shape, item)],
        "on_batch": [f"{name}.{scope}" for scope in HOOKS[:2] for name in recorders]
        + [f"{name}.on_batch" for name in around(shape, item)],
    }[hook]
    assert balanced(trace) == open_rings[::-1]
    healthy = trace[: len(trace) - len(open_rings)]
    assert healthy == whole[: len(healthy)], "up to the error all is as it would be without one"


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


class Raising(RunnerItem):
    """Raise an error in a hook, plain or as a generator before its yield."""

    def __init__(self, error, hook):
        self.error = error
        setattr(self, hook, self.fail)

    def fail(self, state):
        raise self.error


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
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_any_error_arrives_unchanged_through_several_rings(hook, error):
    trace = []
    nested = Runner(Passing(), Recorder("b", trace), Raising(error, hook))
    with pytest.raises(type(error)) as caught:
        Runner(Passing(), Recorder("a", trace), Batches(1), nested).run(passes=1)
    assert caught.value is error
    assert error.__cause__ is None
    assert error.__context__ is None
    assert balanced(trace)[:2] == [f"b.{hook}", f"a.{hook}"]


def test_an_error_that_was_caused_by_a_stop_iteration_is_not_taken_for_one():
    error = RuntimeError("mine")
    error.__cause__ = StopIteration()
    with pytest.raises(RuntimeError) as caught:
        Runner(Passing(), Batches(1), Passing(), Raising(error, "on_batch")).run(passes=1)
    assert caught.value is error


@pytest.mark.parametrize("error", [PlannedError("inside"), StopIteration("inside")], ids=repr)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_runtime_error_of_a_ring_that_leaves_is_not_taken_for_the_error_inside(hook, error):
    class Leaves(RunnerItem):
        def leave(self, state):
            try:
                yield
            finally:
                raise RuntimeError("while leaving")

    leaves = Leaves()
    setattr(leaves, hook, leaves.leave)
    with pytest.raises(RuntimeError, match=r"^while leaving$") as caught:
        Runner(leaves, Batches(1), Raising(error, "on_batch")).run(passes=1)
    assert caught.value.__context__ is error


def test_a_stop_iteration_in_a_generator_hook_is_the_runtime_error_that_python_makes_of_it():
    class Careless(RunnerItem):
        def on_batch(self, state):
            next(iter(()))
            yield

    with pytest.raises(RuntimeError, match="generator raised StopIteration"):
        Runner(Passing(), Batches(1), Careless()).run(passes=1)


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

    class Data(RunnerItem):
        def on_pass(self, state):
            state.batches = broken()

    trace = []
    with pytest.raises(PlannedError, match="no more"):
        Runner(Recorder("a", trace), Data()).run(passes=1)
    assert trace[-3:] == ["a.on_batch:out", "a.on_pass:error", "a.initialize:error"]


# -- errors while leaving ----------------------------------------------------------------------------------------------


class Clumsy(RunnerItem):
    """Fail while leaving after an error, in one hook or in all."""

    def __init__(self, name, hook=None):
        self.name, self.hook = name, hook

    def initialize(self, state):
        yield from self._leave("initialize")

    def on_pass(self, state):
        yield from self._leave("on_pass")

    def on_batch(self, state):
        yield from self._leave("on_batch")

    def _leave(self, hook):
        try:
            yield
        finally:
            if self.hook in (hook, None):
                raise OSError(f"{self.name}.{hook}")


def chain(error):
    """Return the texts of an error and of those it came from."""
    return [str(error), *chain(error.__context__)] if error else []


@pytest.mark.parametrize("hook", HOOKS)
def test_errors_while_leaving_are_chained_and_the_other_rings_still_leave(hook):
    trace = []
    a, b, c = (Recorder(name, trace) for name in "abc")
    with pytest.raises(OSError) as caught:
        Runner(a, Batches(1), Clumsy("x", hook), b, Clumsy("y", hook), c, Failing("on_batch")).run(passes=1)
    assert chain(caught.value) == [f"x.{hook}", f"y.{hook}", "on_batch in"]
    assert len(balanced(trace)) == 9


def test_errors_while_leaving_are_chained_across_scopes_and_runners():
    trace = []
    nested = Runner(Clumsy("y"), Recorder("b", trace), Failing("on_batch", "out"))
    with pytest.raises(OSError) as caught:
        Runner(Recorder("a", trace), Clumsy("x"), Batches(1), nested).run(passes=1)
    assert chain(caught.value) == [
        "x.initialize",
        "y.initialize",
        "x.on_pass",
        "y.on_pass",
        "x.on_batch",
        "y.on_batch",
        "on_batch out",
    ]
    assert len(balanced(trace)) == 6


@pytest.mark.parametrize("hook", HOOKS)
def test_an_error_on_the_way_out_of_one_ring_is_an_error_inside_to_the_rings_around_it(hook):
    trace = []
    with pytest.raises(OSError, match=f"^x.{hook}$"):
        Runner(Recorder("a", trace), Batches(1), Clumsy("x", hook), Recorder("b", trace)).run(passes=1)
    assert f"b.{hook}:out" in trace
    assert f"a.{hook}:error" in trace


def test_an_error_instead_of_a_swallowed_one_still_remembers_it():
    class Replace(RunnerItem):
        def on_batch(self, state):
            with suppress(PlannedError):
                yield
            raise OSError("instead")

    with pytest.raises(OSError) as caught:
        Runner(Batches(1), Replace(), Failing("on_batch")).run(passes=1)
    assert chain(caught.value) == ["instead", "on_batch in"]


# -- swallowing and retrying -------------------------------------------------------------------------------------------


class Swallow(RunnerItem):
    """Let no PlannedError out of one hook."""

    def __init__(self, hook):
        setattr(self, hook, self.swallow)

    def swallow(self, state):
        with suppress(PlannedError):
            yield


@pytest.mark.parametrize(("hook", "batches", "passes"), [("on_batch", 3, 2), ("on_pass", 2, 2), ("initialize", 1, 1)])
def test_a_ring_that_swallows_an_error_ends_its_own_scope_and_the_loop_goes_on(hook, batches, passes):
    trace = []
    failing = Failing("on_batch", step=0, times=1)
    state = Runner(Recorder("a", trace), Swallow(hook), Batches(3), Recorder("b", trace), failing).run(passes=2)
    assert trace.count("a.on_pass:in") == passes
    assert trace.count("a.on_batch:in") == {"on_batch": 6, "on_pass": 1 + 3, "initialize": 1}[hook]
    assert trace.count("a.initialize:out") == 1
    assert trace.count("b.on_batch:error") == 1
    assert state.step == {"on_batch": 5, "on_pass": 3, "initialize": 0}[hook]


def test_a_swallowed_error_of_the_way_in_skips_what_is_inside():
    trace = []
    runner = Runner(Recorder("a", trace), Swallow("initialize"), Failing("initialize"), Recorder("b", trace))
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
    retry = Retry(5)
    state = Runner(
        Recorder("a", trace), Batches(2), retry, Recorder("b", trace), Failing("on_batch", step=0, times=2)
    ).run(passes=1)
    batch = [entry for entry in trace if "on_batch" in entry]
    assert batch == [
        "a.on_batch:in",
        *["b.on_batch:in", "b.on_batch:error"] * 2,
        "b.on_batch:in",
        "b.on_batch:out",
        "a.on_batch:out",
        *["a.on_batch:in", "b.on_batch:in", "b.on_batch:out", "a.on_batch:out"],
    ]
    assert retry.failures == 2
    assert state.step == 2


def test_a_batch_that_fails_on_the_way_out_and_is_tried_again_counts_once():
    state = Runner(Batches(2), Retry(5), Failing("on_batch", "out", step=0, times=1)).run(passes=1)
    assert state.step == 2


def test_a_ring_that_gives_up_trying_raises_the_last_error():
    failing = Failing("on_batch")
    with pytest.raises(PlannedError) as caught:
        Runner(Batches(1), retry := Retry(3), failing).run(passes=1)
    assert retry.failures == 3
    assert caught.value.__context__ is None


def test_retries_of_two_rings_multiply():
    outer, inner = Retry(2), Retry(3)
    with pytest.raises(PlannedError):
        Runner(Batches(1), outer, inner, Failing("on_batch")).run(passes=1)
    assert (outer.failures, inner.failures) == (2, 6)


def test_a_retry_may_run_the_inside_several_times_after_its_success():
    class TwiceInTheEnd(RunnerItem):
        def on_batch(self, state):
            with suppress(PlannedError):
                yield
            yield
            yield

    trace = []
    Runner(Batches(1), TwiceInTheEnd(), Recorder("a", trace), Failing("on_batch", times=1)).run(passes=1)
    assert [entry for entry in trace if "on_batch" in entry] == [
        "a.on_batch:in",
        "a.on_batch:error",
        *["a.on_batch:in", "a.on_batch:out"] * 2,
    ]


def test_a_retry_after_running_out_of_memory_finds_the_memory_of_the_failed_try_free():
    """Without the help of the garbage collector: no ring inside and not the engine holds the error any more."""

    class Activations:
        pass

    class Machine(RunnerItem):
        def __init__(self):
            self.alive = []

        def on_batch(self, state):
            self.alive.append([activation() is not None for activation in kept])
            activations = Activations()
            kept.append(weakref.ref(activations))
            if len(kept) < 4:
                raise MemoryError

    class TryAgain(RunnerItem):
        def on_batch(self, state):
            while len(kept) < 4:
                with suppress(MemoryError):
                    yield

    kept = []
    gc.disable()
    try:
        Runner(Batches(1), TryAgain(), Recorder("a"), machine := Machine(), Recorder("b")).run(passes=1)
    finally:
        gc.enable()
    assert machine.alive == [[False] * n for n in range(4)]


# -- compose, hold and enter by themselves -----------------------------------------------------------------------------


def test_compose_of_no_hooks_is_the_center_itself():
    def center(state):
        pass

    assert compose([], center) is center


def test_compose_runs_each_hook_with_the_state_the_outermost_first():
    seen = []

    def plain(state):
        seen.append(("plain", state))

    def ring(state):
        seen.append(("in", state))
        yield
        seen.append(("out", state))

    state = State()
    compose([plain, ring], lambda state: seen.append(("center", state)))(state)
    assert seen == [("plain", state), ("in", state), ("center", state), ("out", state)]


def test_a_composed_ring_can_run_again_and_again():
    seen = []

    def ring(state):
        yield
        seen.append("out")

    run = compose([ring, ring], lambda state: None)
    for _ in range(3):
        run(State())
    assert seen == ["out"] * 6


def test_a_ring_that_skips_the_inside_closes_nothing_and_raises_nothing():
    def never(state):
        return
        yield

    reached = []
    compose([never], reached.append)(State())
    assert reached == []


def test_hold_leaves_the_rings_around_the_inside():
    seen = []

    def ring(state):
        seen.append("in")
        yield
        seen.append("out")

    hold([ring, lambda state: seen.append("plain"), ring], lambda state: seen.append("inside"), State())
    assert seen == ["in", "plain", "in", "inside", "out", "out"]


def test_enter_leaves_the_rings_when_the_stack_is_closed():
    seen = []

    def ring(state):
        yield
        seen.append("out")

    with ExitStack() as rings:
        enter([ring, ring], State(), rings)
        assert seen == []
    assert seen == ["out", "out"]


# -- what a hook must not do -------------------------------------------------------------------------------------------


class Returns(RunnerItem):
    """Return something from a hook that is no generator function."""

    def __init__(self, hook, answer):
        self.answer = answer
        setattr(self, hook, self.give)

    def give(self, state):
        return self.answer() if callable(self.answer) else self.answer


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("answer", [0, False, "text", [], object()], ids=lambda answer: type(answer).__name__)
def test_a_hook_that_returns_a_value_is_told_where_to_put_it(hook, answer):
    trace = []
    with pytest.raises(HookError) as caught:
        Runner(Recorder("a", trace), Batches(1), Returns(hook, answer)).run(passes=1)
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
        Runner(Batches(1), Returns(hook, generator)).run(passes=1)
    assert begun == []


@pytest.mark.parametrize("hook", HOOKS)
def test_coroutine_hooks_are_refused_when_the_runner_is_built_with_its_drawing(hook):
    async def coroutine(self, state):
        pass

    async def generator(self, state):
        yield

    for function in (coroutine, generator):
        item = type("Waits", (RunnerItem,), {hook: function})()
        with pytest.raises(
            CompositionError, match=r"^waits \(Waits\).* is a coroutine; .*drop the 'async'\."
        ) as caught:
            Runner(Batches(1), Runner(item))
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

    item = type("Twice", (RunnerItem,), {hook: twice})()
    with pytest.raises(HookError, match="yielded a second time"):
        Runner(Batches(1), item).run(passes=1)
    assert seen == ["closed"]


# -- random onions against a reference ---------------------------------------------------------------------------------


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
    """A ring that can fail on its way in and before leaving, and yields so many times; -1: a plain function."""

    def __init__(self, name, yields, tape):
        self.name, self.tape = name, tape
        self.on_batch = self.plain if yields < 0 else self.ring
        self.yields = yields

    def plain(self, state):
        self.tape.may_fail()

    def ring(self, state):
        self.tape.may_fail()
        self.tape.record(f"{self.name}:in")
        try:
            for _ in range(self.yields):
                yield
                self.tape.may_fail()
        except PlannedError:
            self.tape.record(f"{self.name}:error")
            raise
        self.tape.record(f"{self.name}:out")


def reference(nodes, tape, inside):
    """Run a tree of nodes the obvious way: by recursion."""
    if not nodes:
        inside()
        return
    (name, yields), rest = nodes[0], nodes[1:]
    if isinstance(yields, list):
        reference(yields, tape, lambda: None)
        reference(rest, tape, inside)
        return
    tape.may_fail()
    if yields < 0:
        reference(rest, tape, inside)
        return
    tape.record(f"{name}:in")
    try:
        for _ in range(yields):
            reference(rest, tape, inside)
            tape.may_fail()
    except PlannedError:
        tape.record(f"{name}:error")
        raise
    tape.record(f"{name}:out")


def numbered(shape, counter):
    """Give every node of a shape a name; a nested list stays a list."""
    return [(f"n{next(counter)}", numbered(node, counter) if isinstance(node, list) else node) for node in shape]


def onion(nodes, tape):
    return Runner(
        *[onion(yields, tape) if isinstance(yields, list) else Node(name, yields, tape) for name, yields in nodes]
    )


behaviours = st.sampled_from([-1, 0, 1, 1, 1, 2])
shapes = st.recursive(
    st.lists(behaviours, max_size=4), lambda inner: st.lists(behaviours | inner, max_size=4), max_leaves=5
)


@settings(max_examples=300)
@given(shape=shapes, batches=st.integers(1, 2), fails_at=st.integers(0, 40))
def test_random_onions_do_what_plain_recursion_does(shape, batches, fails_at):
    """Random trees of plain, single, doubling and skipping rings with one random failure: the very same trace."""
    nodes = numbered(shape, iter(range(1000)))
    expected, tape = Tape(fails_at), Tape(fails_at)
    failed = None
    try:
        for _ in range(batches):
            reference(nodes, expected, lambda: None)
    except PlannedError as error:
        failed = str(error)
    runner = Runner(Batches(batches), *onion(nodes, tape).items)
    if failed is None:
        runner.run(passes=1)
    else:
        with pytest.raises(PlannedError, match=f"^{failed}$"):
            runner.run(passes=1)
    assert tape.events == expected.events
    assert tape.count == expected.count
    balanced(tape.events)


@settings(max_examples=150)
@given(
    shape=st.recursive(st.lists(st.just("r"), max_size=3), lambda inner: st.lists(st.just("r") | inner, max_size=3)),
    where=st.integers(0, 1000),
    hook=st.sampled_from(HOOKS),
    way=st.sampled_from(["in", "out"]),
    step=st.integers(0, 3),
)
def test_random_onions_of_recorders_leave_properly_whatever_fails(shape, where, hook, way, step):
    """In all three scopes at once: a failure at a random place and step gives a Dyck word over two passes."""
    counter = iter(range(1000))

    def named(nodes):
        return [named(node) if isinstance(node, list) else f"r{next(counter)}" for node in nodes]

    shape, trace = named(shape), []
    places = list(positions(shape))
    failing = Failing(hook, way, step=step)
    runner = Runner(Batches(2), *build(put(shape, places[where % len(places)], failing), trace).items)
    fails = step in {"initialize": (0,), "on_pass": (0, 2), "on_batch": (0, 1, 2, 3)}[hook]
    if fails:
        with pytest.raises(PlannedError):
            runner.run(passes=2)
    else:
        runner.run(passes=2)
        assert balanced(trace) == []
    balanced(trace)


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
    Depth.deepest = 0
    inmost = [Failing("on_batch", "in")] if wrong else []
    runner = Runner(Batches(2), *(Depth() for _ in range(1500)), *inmost)
    with pytest.raises(PlannedError) if wrong else ExitStack():
        runner.run(passes=1)
    assert (Depth.entered, Depth.deepest) == (0, 1500)


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


@pytest.mark.parametrize("wrong", [False, True])
def test_after_a_run_the_recursion_limit_is_what_it_was(recursion_limit, wrong):
    limits = []
    test = Runner(Batches(1), Observer(on_batch_begin=lambda state: limits.append(sys.getrecursionlimit())))
    inside = [Failing("on_batch", "in", 1)] if wrong else []
    runner = Runner(Batches(2), *(Depth() for _ in range(600)), Tester(test, every=1), *inside)
    assert sys.getrecursionlimit() == recursion_limit
    with pytest.raises(PlannedError) if wrong else ExitStack():
        runner.run(passes=1)
    assert min(limits) > 1600
    assert sys.getrecursionlimit() == recursion_limit
    with runner.without(Failing) if wrong else runner as opened:
        opened.run_pass()
        assert sys.getrecursionlimit() == recursion_limit
