"""Batches on their way to the run: a signal at any moment neither loses nor repeats one; boundaries between them."""

import json
import signal
import subprocess
import sys
import threading
import traceback
import weakref
from operator import length_hint

import pytest

from onion import (
    Accumulate,
    DataProvider,
    GradientMachine,
    Mailbox,
    Observer,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Signals,
    TaskData,
    TaskSampler,
)
from onion.data.batch_iterator import BatchBoundary, BatchIterator
from onion.data.interruptible_wait import InterruptibleWait
from onion.engine.state import State
from onion.multitask.strategies import RoundRobin
from tests.data.threads import prefetch_threads
from tests.paths import ROOT
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def _the_usual_handlers():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


class Pairs(RunnerItem):
    """Takes another batch for each, as Accumulate does."""

    def on_pass(self, state):
        self.batches = iter(state.batches)
        state.batches = self.batches

    def on_batch(self, state):
        state.batch = (state.batch, next(self.batches, None))


def provided(source=range(5), **options):
    return DataProvider(source, 2, **{"collate": list, "prefetch": 0, **options})


def streamed():
    return provided(lambda: iter(range(5)))


def prepared():
    return provided(prefetch=1)


def sampled():
    """Its strategy, its generator and its feeds all move on with a draw."""
    tasks = {"a": TaskData(provided()), "b": TaskData(streamed(), 0.9, target=False)}
    return TaskSampler(tasks, RoundRobin())


def run(data, *rings, after=None):
    """Run two passes, or what is left of them after the run of (data, state); return what was seen, and the state."""
    seen = []

    def start(state):
        if after is not None:
            stopped, then = after
            state.pass_id, state.batch_id, state.step = then.pass_id, then.batch_id, then.step
            data.load_state_dict(stopped.state_dict())

    look = Observer(initialize=start, on_batch_end=lambda state: seen.append((state.pass_id, state.task, state.batch)))
    state = Runner(Signals(leave=False), look, data, *rings).run(passes=2)
    return seen, state


# -- a signal between any two instructions -----------------------------------------------------------------------------

MODULES = ("interruptible_wait", "loader", "prefetch", "batch_iterator")
TRACED = [*(f"onion/data/{name}.py" for name in MODULES), "onion/multitask/task_sampler.py"]
DRAWING = ("__next__", "__enter__", "__exit__", "_end", "_indexed", "_streamed", "_take", "_draw", "_awaited")


class Every:
    """Sends a signal to this process before the n-th instruction of those that draw batches, in the files traced."""

    def __init__(self, at):
        self.at, self.done = at, 0

    def __call__(self, frame, event, argument):
        if not (frame.f_code.co_filename.endswith(tuple(TRACED)) and frame.f_code.co_name in DRAWING):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.look

    def look(self, frame, event, argument):
        if event == "opcode" and signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            self.done += 1
            if self.done == self.at:
                sys.settrace(None)
                signal.raise_signal(signal.SIGTERM)
        return self.look

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self)
        return self

    def __exit__(self, *error):
        sys.settrace(self.before)


CASES = {
    f"{make.__name__}{' in pairs' * len(rings)}": (make, rings)
    for make in (provided, streamed, prepared, sampled)
    for rings in ((), (Pairs,))
}


@pytest.fixture(scope="module")
def tried():
    """What came of every case, tried in another process.

    An error that a trace function raises may be left behind in the interpreter as one that is being handled.
    """
    program = "from tests.data.test_batch_iterator import try_all; try_all()"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def try_all():
    """Try every case; the last line that is printed has the error of each, or nothing."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Paddle's is not Python's
    told = {}
    for name, case in CASES.items():
        try:
            told[name] = try_moments(*case)
        except Exception:
            told[name] = traceback.format_exc()
    print(json.dumps(told))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_signal_at_an_instruction_loses_no_batch_and_gives_none_twice(case, tried):
    assert tried[case] is None


def try_moments(make, rings):
    uncut, _ = run(make(), *(ring() for ring in rings))
    with Every(0) as counted:
        run(make(), *(ring() for ring in rings))
    cut, tried = 0, range(1, counted.done + 1, counted.done // 100)  # the instructions come again with each batch
    for at in tried:
        data = make()
        with Every(at):
            seen, state = run(data, *(ring() for ring in rings))
        cut += len(seen) < len(uncut)
        rest, _ = run(make(), *(ring() for ring in rings), after=(data, state))
        assert seen + rest == uncut, at
    assert cut > len(tried) / 2


def test_the_files_that_are_traced_are_there():
    assert all((ROOT / name).exists() for name in TRACED)


# -- waiting -----------------------------------------------------------------------------------------------------------


class Hanging:
    """A source whose third batch does not come; it sends a signal when the main thread waits for it.

    ``watch`` is an item that tells it when the run has made the last step before that.
    """

    def __init__(self):
        self.release, self.done = threading.Event(), threading.Event()

    def watch(self, last_step):
        return Observer(on_batch_end=lambda state: self.done.set() if state.step == last_step else None)

    def __call__(self):
        yield from range(4)
        main = threading.main_thread().ident
        if threading.get_ident() == main:
            signal.raise_signal(signal.SIGTERM)
        else:
            assert self.done.wait(PATIENCE)
            while sys._current_frames()[main].f_code.co_name != "_awaited":
                pass
            signal.pthread_kill(main, signal.SIGTERM)
        self.release.wait(PATIENCE)
        yield from range(4, 9)


@pytest.fixture
def hanging():
    source = Hanging()
    yield source
    source.release.set()
    for thread in prefetch_threads():
        thread.join(PATIENCE)


def takes(source, prefetch, batches):
    """A TaskSampler of one task, whose pass is so many batches."""
    tasks = {
        "a": TaskData(provided(range(2 * batches))),
        "b": TaskData(provided(source, prefetch=prefetch), target=False),
    }
    return TaskSampler(tasks, RoundRobin())


@pytest.mark.parametrize("prefetch", [0, 1, 2])
@pytest.mark.parametrize("rings", [(), (Mailbox,)])
def test_a_run_that_waits_for_its_next_batch_ends_there(prefetch, rings, hanging):
    data = provided(hanging, prefetch=prefetch)
    seen, state = run(data, *(ring() for ring in rings), hanging.watch(2))
    assert seen == [(0, None, [0, 1]), (0, None, [2, 3])]
    assert (state.stopped, state.pass_cut, state.step) == ("received SIGTERM", True, 2)
    assert data.state_dict() == {"batch": 2, "examples": 4}
    assert not hanging.release.is_set()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_run_of_many_tasks_that_waits_for_one_of_them_ends_there(prefetch, hanging):
    data = takes(hanging, prefetch, 9)
    seen, state = run(data, hanging.watch(5))
    assert [task for _, task, _ in seen] == ["a", "b", "a", "b", "a"]
    assert [batch for *_, batch in seen] == [[0, 1], [0, 1], [2, 3], [2, 3], [4, 5]]
    assert (state.stopped, state.pass_cut, state.step) == ("received SIGTERM", True, 5)
    uncut, _ = run(takes(range(9), 0, 9))
    rest, _ = run(takes(range(9), 0, 9), after=(data, state))
    assert seen + rest == uncut


def test_the_source_may_clean_up_on_the_way():
    closed = []

    def source():
        try:
            yield from range(2)
            signal.raise_signal(signal.SIGTERM)
        finally:
            closed.append(True)

    seen, state = run(provided(source))
    assert (len(seen), closed, state.pass_cut) == (1, [True], True)


def test_a_batch_under_way_waits_for_what_it_lacks():
    """Half a group would make another update than that of a run that was not stopped."""

    def source():
        for i in range(8):
            if i == 6:
                signal.raise_signal(signal.SIGTERM)
            yield i

    seen, state = run(provided(source), Pairs())
    assert [batch for *_, batch in seen] == [([0, 1], [2, 3]), ([4, 5], [6, 7])]
    assert (state.step, state.stopped) == (2, "received SIGTERM")


@pytest.mark.parametrize("at", [4, 5])
def test_accumulate_makes_the_update_that_was_begun_and_no_other(at):
    from onion.testing import toy_examples, toy_network

    examples = toy_examples(8)

    def trained(signalled, **limits):
        import paddle

        def source():
            for i, example in enumerate(examples):
                if signalled and i == at:
                    signal.raise_signal(signal.SIGTERM)
                yield example

        network = toy_network()
        updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
        data = DataProvider(source, 1, prefetch=0)
        state = Runner(Signals(leave=False), data, updater, Accumulate(2), GradientMachine(network)).run(**limits)
        return state.step, data.state_dict(), [each.numpy().tobytes() for each in network.parameters()]

    assert trained(True, passes=1) == trained(False, steps=2 if at == 4 else 3)


def test_the_run_of_another_state_is_not_woken():
    state, other = State(), State()
    wait = InterruptibleWait()
    supply = BatchIterator(state, wait, iter([1, 2]), lambda: "here")
    supply.wake(other)
    assert not wait.asked
    supply.wake(state)
    assert wait.asked


def test_a_signal_just_before_the_wait_is_not_missed():
    """It comes after the Runner has looked, and before the source is asked."""

    class Late(RunnerItem):
        def on_pass(self, state):
            state.batches = self.late(state, iter(state.batches))

        def late(self, state, batches):
            while True:
                if state.step == 1:
                    signal.raise_signal(signal.SIGTERM)
                try:
                    yield next(batches)
                except StopIteration:
                    return

    asked = []
    data = provided(lambda: (asked.append(i) or i for i in range(9)))
    seen, _ = run(data, Late())
    assert (len(seen), asked) == (1, [0, 1])


def test_an_inner_wait_that_is_woken_is_not_taken_for_its_own_end():
    """A source that draws from another onion's batches."""
    wait, state = InterruptibleWait(), State()

    def source():
        yield from BatchIterator(State(), InterruptibleWait(), outer_wakes(), lambda: "inner")
        yield "the inner one ended"

    def outer_wakes():
        yield 1
        with wait:
            wait.wake()

    supply = BatchIterator(state, wait, source(), lambda: "outer")
    assert next(supply) == 1
    state.batch_id += 1
    assert list(supply) == []


def test_it_does_not_keep_the_state_alive():
    state = State()
    state.batches = BatchIterator(state, InterruptibleWait(), iter([]), str)
    alive = weakref.ref(state)
    del state
    assert alive() is None


# -- boundaries --------------------------------------------------------------------------------------------------------


class Slow:
    """Batches that are ready after some looks."""

    def __init__(self, *looks):
        self.looks = list(looks)

    def ready(self, timeout):
        self.looks[0] -= 1
        return self.looks[0] < 0

    def __next__(self):
        self.looks.pop(0)


@pytest.fixture
def boundary():
    """Return a function that puts a boundary around batches; the state, and when it was looked at."""
    state, looks = State(), []
    return lambda batches: BatchBoundary(batches, state, lambda state: looks.append(state.batch_id)), state, looks


def test_there_is_a_look_before_each_batch_that_the_runner_draws(boundary):
    around, state, looks = boundary
    border = around(iter("abcd"))
    assert next(border) == "a"
    assert next(border) == "b"  # for the batch under way, as Accumulate does
    state.batch_id = 1
    assert next(border) == "c"
    assert looks == [0, 1]
    assert border.given == 3


def test_while_the_data_are_slow_there_are_more(boundary):
    around, state, looks = boundary
    border = around(Slow(0, 3))
    next(border)
    state.batch_id = 1
    next(border)
    assert looks == [0, 1, 1, 1, 1]


def test_a_stop_ends_the_wait():
    state = State()
    border = BatchBoundary(Slow(10**9), state, lambda state: state.stop("enough"))
    with pytest.raises(StopIteration):
        next(border)
    assert border.given == 0


def test_a_boundary_around_another_waits_too(boundary):
    around, state, looks = boundary
    next(around(BatchBoundary(Slow(2), state, lambda state: None)))
    assert len(looks) == 3
    assert around(iter("a")).ready(0.0)


@pytest.mark.parametrize(("batches", "left", "at_least"), [([1, 2], 2, 2), ((i for i in (1, 2)), -1, 1)])
def test_they_know_what_is_left_if_the_batches_do(batches, left, at_least):
    assert length_hint(BatchIterator(State(), InterruptibleWait(), iter(batches), str), -1) == left
    assert length_hint(BatchBoundary(iter(batches), State(), print), -1) == at_least
