"""The state of items over runs: each begins anew or with what was loaded, and leaves that of the run around it."""

import attrs
import pytest

from onion import Every, HookError, Observer, Runner, RunnerItem, Saver, Slot, State
from onion.engine.item import HOOKS, RUN, is_in_use
from onion.testing import Batches, Failing, Recorder
from tests.rings import Forgive, Within


class Counter(RunnerItem):
    """Count batches; note what it had at each, and the order of what is called."""

    def __init__(self, trace=None):
        self.trace = [] if trace is None else trace

    def reset(self):
        self.trace.append("reset")
        self.count = 0

    def initialize(self, state):
        self.trace.append(f"initialize {self.count}")

    def on_batch(self, state):
        yield
        self.count += 1

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, saved):
        self.trace.append("load")
        self.count = saved["count"]


# -- a run begins ------------------------------------------------------------------------------------------------------


def test_every_run_begins_with_reset_before_any_initialize():
    trace = []
    runner = Runner(Recorder("outer", trace), Counter(trace), Batches(3))
    for _ in range(2):
        runner.run(passes=1)
        assert trace[:3] == ["reset", "outer.initialize:in", "initialize 0"]
        assert runner[Counter].count == 3
        trace.clear()


def test_a_resumed_run_resets_and_then_loads(tmp_path):
    counter = Counter()
    runner = Runner(Saver(tmp_path), counter, Batches(4))
    runner.run(steps=3)
    counter.trace.clear()
    runner.run(passes=2)
    assert counter.trace == ["reset", "load", "initialize 3"]
    assert counter.count == 3 + 2 * 4  # which Batches begin again, that of the pass that was cut too


def test_a_state_that_was_loaded_by_hand_is_for_the_next_run_alone():
    runner = Runner(counter := Counter(), Batches(3))
    counter.load_state_dict({"count": 10})
    assert counter.state_dict() == {"count": 10}
    assert runner.run(passes=1).step == 3
    assert counter.count == 13
    assert set(vars(counter)) == {"trace", "count"}
    runner.run(passes=1)
    assert counter.count == 3


def test_a_state_that_a_ring_further_out_loads_stays():
    counter = Counter()
    load = Observer(initialize=lambda state: counter.load_state_dict({"count": 10}))
    runner = Runner(load, counter, Batches(3))
    runner.run(passes=1)
    assert counter.count == 13
    runner.without(load).run(passes=1)
    assert counter.count == 3


class Mixin:
    def load_state_dict(self, saved):
        self.count = saved["count"]


class Mixed(Mixin, Counter):
    pass


class Derived(Mixed):
    def load_state_dict(self, saved):
        super().load_state_dict(saved)
        self.more = True


@pytest.mark.parametrize("kind", [Mixed, Derived])
def test_the_load_of_a_mixin_and_of_a_parent_is_known(kind):
    item = kind()
    item.load_state_dict({"count": 10})
    Runner(item, Batches(1)).run(passes=1)
    assert item.count == 11


def test_a_load_that_fails_loads_nothing_for_the_next_run():
    counter = Counter()
    with pytest.raises(KeyError):
        counter.load_state_dict({})
    Runner(counter, Batches(1)).run(passes=1)
    assert counter.count == 1


@pytest.mark.parametrize(
    "nest", [lambda item: Runner(item), lambda item: Every(1, item), Slot, lambda item: Runner(Runner(item))]
)
def test_items_that_others_hold_begin_too(nest):
    counter = Counter()
    runner = Runner(Batches(3), nest(counter))
    for _ in range(2):
        runner.run(passes=1)
        assert counter.count == 3


def test_with_runner_begins_once():
    runner = Runner(counter := Counter(), Batches(3))
    for _ in range(2):
        with runner:
            runner.run_pass()
            runner.run_pass()
        assert counter.count == 6
    assert counter.trace.count("reset") == 2


@pytest.mark.parametrize("wrong", [lambda self: 3, lambda self: (yield)])
def test_a_reset_that_returns_something_is_refused(wrong):
    runner = Runner(type("Wrong", (RunnerItem,), {"reset": wrong})(), Batches(1))
    with pytest.raises(HookError, match=r"^wrong \(Wrong\)\.reset returned (int|generator); it is a plain function"):
        runner.run(passes=1)


# -- a run inside ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_parent", [True, False])
def test_a_run_inside_has_a_state_of_its_own(with_parent):
    counter, seen = Counter(), []
    test = Runner(counter, Batches(5), Observer(on_pass_end=lambda state: seen.append(counter.count)))
    Runner(counter, Batches(4), Within(test, 2, with_parent=with_parent)).run(passes=1)
    assert (counter.count, seen) == (4, [5])


def test_runs_in_runs_in_runs():
    counter, seen = Counter(), []
    note = Observer(on_pass_end=lambda state: seen.append(counter.count))
    innermost = Runner(counter, Batches(7), note)
    middle = Runner(counter, Batches(5), note, Within(innermost, 2))
    Runner(counter, Batches(4), note, Within(middle, 2)).run(passes=2)
    assert seen == [7, 5, 4, 8]


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("way", ["in", "out"])
def test_an_error_of_a_run_inside_leaves_the_state_of_the_run_around(hook, way):
    counter, forgiven = Counter(), []
    test = Runner(counter, Batches(5), Failing(hook, way))
    Runner(Forgive(call=forgiven.append), Within(test, 2), counter, Batches(4)).run(passes=1)
    assert (counter.count, len(forgiven)) == (4, 1)
    assert not is_in_use(counter)


def test_an_interrupt_leaves_an_item_that_begins_anew():
    counter, interrupts = Counter(), [KeyboardInterrupt]

    def interrupt(state):
        if interrupts:
            raise interrupts.pop()

    runner = Runner(counter, Batches(3), Within(Runner(counter, Batches(2), Observer(on_batch_end=interrupt)), 2))
    with pytest.raises(KeyboardInterrupt):
        runner.run(passes=1)
    runner.run(passes=1)
    assert counter.count == 3


def test_attributes_that_a_run_inside_has_added_are_gone():
    class Adding(RunnerItem):
        def reset(self):
            self.seen = []

        def on_batch(self, state):
            self.seen.append(state.batch)
            if state.parent is not None:
                self.added = True

    item = Adding()
    Runner(item, Batches(3), Within(Runner(item, Batches(9)), 2)).run(passes=1)
    assert vars(item) == {"seen": [0, 1, 2]}


def test_attributes_in_slots_are_put_back_too():
    @attrs.define
    class Slotted(RunnerItem):
        seen: int = 0

        def reset(self):
            self.seen = 0

        def on_batch(self, state):
            self.seen += 1

    Runner(item := Slotted(), Batches(3), Within(Runner(item, Batches(9)), 2)).run(passes=1)
    assert item.seen == 3


def test_an_item_without_reset_is_one_for_all_runs():
    class Plain(RunnerItem):
        seen = 0

        def on_batch(self, state):
            self.seen += 1

    Runner(plain := Plain(), Batches(3), Within(Runner(plain, Batches(2)), 2)).run(passes=1)
    assert plain.seen == 5


# -- items of the outermost run only -----------------------------------------------------------------------------------


class Alone(Recorder):
    outermost_only = True


@pytest.mark.parametrize("nest", [lambda *items: items, lambda *items: [Runner(*items)]], ids=["flat", "nested"])
@pytest.mark.parametrize("timed", [False, True], ids=["untimed", "timed"])
def test_a_run_inside_runs_as_if_the_item_were_not_there(nest, timed):
    trace, inner = [], []
    alone = Alone("alone", trace)
    test = Runner(*nest(alone, Recorder("other", inner)), Batches(2))
    test = test.timed() if timed else test
    Runner(alone, Batches(3), Within(test, 1)).run(passes=1)
    assert [trace.count(f"alone.{hook}:in") for hook in HOOKS] == [1, 1, 3]
    assert inner.count("other.on_batch:out") == 2
    test.run(passes=1)
    assert trace.count("alone.on_batch:in") == 3 + 2, "by itself it has the item"


def test_a_run_that_an_interrupt_cut_off_before_it_could_say_so_has_nothing():
    trace = []
    alone = Alone("alone", trace)
    vars(alone)[RUN] = State(runner=Runner(Batches(1)))
    assert not is_in_use(alone)
    Runner(alone, Batches(3)).run(passes=1)
    assert trace.count("alone.on_batch:in") == 3
