"""Slot: a place for an item that comes and goes between passes."""

import re
from contextlib import suppress

import pytest

from onion import (
    CheckpointError,
    CompositionError,
    MovingAverage,
    Observer,
    Runner,
    RunnerItem,
    Saver,
    Slot,
    Tester,
)
from onion.engine.item import HOOKS
from onion.testing import Batches, Failing, PlannedError, Recorder, toy_network
from tests.items.learning import examples, learning, updater
from tests.toys import bits


def put_in_pass(slot, plan):
    """A ring that puts items into a slot in the middle of the passes that the plan names."""

    def put(state):
        if state.batch_id == 0 and state.pass_id in plan:
            slot.put(plan[state.pass_id])

    return Observer(on_batch_begin=put)


def trace_of(compose):
    """Return what recorders see of an onion, which may fail."""
    trace = []
    with suppress(PlannedError):
        Runner(*compose(trace)).run(passes=2)
    return trace


@pytest.mark.parametrize(
    "make",
    [
        lambda trace: None,
        lambda trace: Recorder("a", trace),
        *(lambda trace, hook=hook, way=way: Failing(hook, way) for hook in HOOKS for way in ("in", "out")),
    ],
)
@pytest.mark.parametrize("inside", [[], [Failing("on_batch")]], ids=["", "an error inside"])
def test_a_held_item_is_a_ring_like_any_other_and_none_changes_nothing(make, inside):
    def compose(trace, held):
        item = make(trace)
        ring = [Slot(item)] if held else [item] if item else []
        return [Recorder("outer", trace), *ring, Batches(2), Recorder("inner", trace), *inside]

    assert trace_of(lambda trace: compose(trace, held=True)) == trace_of(lambda trace: compose(trace, held=False))


def test_items_are_exchanged_on_the_way_into_the_next_pass():
    trace = []
    slot = Slot(Recorder("a", trace))
    plan = {0: Recorder("b", trace), 1: None, 3: Recorder("c", trace)}
    Runner(slot, Batches(1), put_in_pass(slot, plan)).run(passes=5)
    one_pass = ["on_pass:in", "on_batch:in", "on_batch:out", "on_pass:out"]
    whole = ["initialize:in", *one_pass, "initialize:out"]
    assert trace == [f"{name}.{way}" for name in "abc" for way in whole]


@pytest.mark.parametrize(("again", "runs"), [(True, 1), (False, 2)], ids=["put in again", "put back"])
def test_the_same_item_put_in_again_stays_and_begins_again_where_it_was_out(again, runs):
    trace = []
    item = Recorder("a", trace)
    slot = Slot(item)
    Runner(slot, Batches(1), put_in_pass(slot, {0: item} if again else {0: None, 1: item})).run(passes=3)
    assert trace.count("a.initialize:in") == trace.count("a.initialize:out") == runs


def test_what_it_held_last_is_there_in_the_next_run():
    trace, slot = [], Slot()
    runner = Runner(slot, Batches(1))
    runner.run(passes=1)
    slot.put(Recorder("a", trace))
    runner.run(passes=1)
    assert trace.count("a.on_batch:in") == 1


def test_an_item_may_skip_and_repeat_and_swallow():
    class Bend(RunnerItem):
        def on_batch(self, state):
            for _ in range(state.batch):
                with suppress(PlannedError):
                    yield

    inner = Recorder("inner")
    Runner(Slot(Bend()), Batches(3), inner, Failing("on_batch", times=1)).run(passes=1)
    assert inner.trace.count("inner.on_batch:in") == 0 + 1 + 2


def reporting():
    return Runner(Batches(1), Observer(on_pass_end=lambda state: state.report({"x": 1.0})))


def test_a_tester_in_it_reports_under_its_name():
    slot, test = Slot(), reporting()
    runner = Runner(Tester(test), slot, Batches(2), put_in_pass(slot, {0: Tester(test)}))
    assert runner.run(passes=2).metrics == {"tester.x": 1.0, "tester-2.x": 1.0}


def test_readings_and_the_drawing_are_the_items():
    telling = type("Telling", (RunnerItem,), {"log_values": lambda self: {"x": 1.0}})()
    for slot, readings, drawn in [(Slot(), {}, "Slot()"), (Slot(telling), {"x": 1.0}, "Slot(Telling)")]:
        assert slot.log_values() == readings
        assert f"slot  {drawn}" in str(Runner(slot, Batches(1)))


# -- saved and resumed -------------------------------------------------------------------------------------------------


def averaging(folder, seed=0, hold=True):
    network = toy_network(seed=seed)
    slot = Slot(MovingAverage(network, decay=0.9) if hold else None)
    return Runner(Saver(folder), slot, examples(20, shuffle=True), *learning(network, optimizer="Adam"))


AVERAGE = "MovingAverage(ToyNetwork, decay=0.9)"


@pytest.mark.parametrize(
    ("held", "saved", "here", "put"), [(True, AVERAGE, "nothing", AVERAGE), (False, "nothing", AVERAGE, None)]
)
def test_a_resumed_run_begins_with_what_was_held(held, saved, here, put, tmp_path):
    averaging(tmp_path, hold=held).run(steps=2)
    said = (
        f"slot was saved with {saved} in it, and this run would begin with {here}; put in what was saved before the "
        f"run, as Slot({put or ''}) or with put({put}), and exchange it once the run is under way."
    )
    with pytest.raises(CheckpointError, match=re.escape(said)):
        averaging(tmp_path, hold=not held).run(passes=2)


def with_tester(folder, every):
    return Runner(Saver(folder), Slot(Tester(reporting(), every=every)), Batches(4))


def test_another_item_of_the_same_class_is_told_by_its_settings(tmp_path):
    with_tester(tmp_path, every=3).run(passes=1)
    wanted = r"saved with Tester\(Runner, every=3\) in it, and this run would begin with Tester\(Runner, every=2\)"
    with pytest.raises(CheckpointError, match=wanted):
        with_tester(tmp_path, every=2).run(passes=2)
    assert with_tester(tmp_path, every=3).run(passes=2).step == 8


class Counter(RunnerItem):
    """Its setting moves, and its saved keys are those of the slot's own."""

    def __init__(self, held=0):
        self.held = held

    def on_batch(self, state):
        self.held += 1

    def state_dict(self):
        return {"held": self.held, "item.held": self.held + 100}

    def load_state_dict(self, saved):
        assert saved == {"held": saved["held"], "item.held": saved["held"] + 100}
        self.held = saved["held"]


def test_keys_and_settings_of_the_item_are_its_own(tmp_path):
    runner = Runner(Saver(tmp_path), Slot(Counter()), Batches(4))
    runner.run(passes=1)
    runner.run(passes=2)  # its attribute is no longer that of a new one
    resumed = Counter()
    assert Runner(Saver(tmp_path), Slot(resumed), Batches(4)).run(passes=3).step == 12
    assert resumed.held == 12


def test_an_exchange_that_still_waits_at_a_cut_is_not_saved(tmp_path):
    first, second = Counter(), Counter(100)
    slot = Slot(first)
    runner = Runner(Saver(tmp_path), slot, Batches(4), put_in_pass(slot, {0: second}))
    runner.run(passes=2, steps=2)
    wanted = r"saved with Counter\(\) in it, and this run would begin with Counter\(held=100\)"
    with pytest.raises(CheckpointError, match=wanted):
        runner.run(passes=2)
    slot.put(first)
    runner.run(passes=1)  # all four batches once more, for Batches keep no place
    assert (first.held, second.held) == (2 + 4, 100)


def test_an_exchange_is_made_again_where_the_command_is(tmp_path):
    """A letter exchanged the item in the first run; the same command goes on with what it says there."""
    slot = Slot(Counter())
    Runner(Saver(tmp_path), slot, Batches(4), put_in_pass(slot, {0: Counter(100)})).run(passes=2)
    wanted = r"saved with Counter\(held=100\) in it, and this run would begin with Counter\(\); put in what"
    slot = Slot(Counter())
    runner = Runner(Saver(tmp_path), slot, Batches(4))
    with pytest.raises(CheckpointError, match=wanted):
        runner.run(passes=3)
    slot.put(Counter(100))
    runner.run(passes=3)
    assert slot.item.held == 100 + 4 + 4


# -- shared ------------------------------------------------------------------------------------------------------------


def within(name, hook, *inner):
    """Return the entries of a recorder's hook around others."""
    return [f"{name}.{hook}:in", *inner, f"{name}.{hook}:out"]


def test_a_test_onion_that_shares_the_slot_has_the_item_that_is_there_and_exchanges_none():
    trace = []
    slot = Slot(Recorder("a", trace))
    training = Runner(slot, Batches(1), put_in_pass(slot, {0: Recorder("b", trace)}))
    training.insert_before(Slot, Tester(Runner(slot, Batches(2)), every=1)).run(passes=2)

    def whole(name):
        batch = within(name, "on_batch")
        test = within(name, "initialize", *within(name, "on_pass", *batch, *batch))
        return within(name, "initialize", *within(name, "on_pass", *batch, *test))

    assert trace == [*whole("a"), *whole("b")]


# -- refused -----------------------------------------------------------------------------------------------------------


class Later(RunnerItem):
    async def on_batch(self, state):
        pass


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (Recorder, "Slot holds an item or None"),
        (1, "Slot holds an item or None"),
        (lambda state: None, "Slot holds an item or None"),
        (Runner(Recorder("a")), "runner holds items of its own; give each a slot"),
        (Slot(), "Slot cannot hold another slot"),
        (Later(), "is a coroutine"),
    ],
)
def test_what_is_no_single_item_is_refused(item, said):
    for put in (Slot, Slot().put):
        with pytest.raises(CompositionError, match=said):
            put(item)


def test_what_cannot_work_there_is_refused_and_nothing_is_exchanged():
    def refused():
        return pytest.raises(CompositionError, match="no gradient machine inside it")

    def put(state):
        with refused():
            slot.put(mover)

    trace, mover = [], updater(toy_network())
    slot = Slot(Recorder("a", trace))
    Runner(slot, Batches(1), Observer(on_batch_begin=put)).run(passes=2)
    assert trace.count("a.on_batch:in") == 2
    with refused() as caught:
        Runner(Slot(mover), Batches(1))
    assert str(caught.value).count("initialize  pass  batch") == 1
    slot.put(mover)
    with refused():
        Runner(slot, Batches(1)).run(passes=1)


def test_what_can_work_there_is_admitted():
    network = toy_network()
    mover, machine = learning(network)
    before = bits(network)
    Runner(examples(8), Slot(mover), machine).run(passes=1)
    assert bits(network) != before


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (lambda a: [Slot(a), Recorder("a")], "two items are named 'a'"),
        (lambda a: [Slot(a), Slot(Recorder("a"))], "two items are named 'a'"),
        (lambda a: [Slot(a), a], "occurs twice in one runner"),
    ],
    ids=["a name that is taken", "by another slot", "the item itself"],
)
def test_an_item_that_is_in_the_onion_already_is_refused(items, said):
    with pytest.raises(CompositionError, match=said):
        Runner(*items(Recorder("a")), Batches(1))
