"""Slot: a place for an item that comes and goes between passes."""

import re
from contextlib import suppress

import paddle
import pytest

from onion import (
    CheckpointError,
    CompositionError,
    DataProvider,
    EarlyStopping,
    GradientMachine,
    HookError,
    MovingAverage,
    Observer,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    Slot,
    Tester,
)
from onion.testing import Batches, Failing, PlannedError, Recorder, toy_examples, toy_network


def put_in_pass(slot, plan):
    """A ring that puts items into a slot in the middle of the passes that the plan names."""

    def put(state):
        if state.batch_id == 0 and state.pass_id in plan:
            slot.put(plan[state.pass_id])

    return Observer(on_batch_begin=put)


def test_an_empty_slot_changes_nothing():
    trace = []
    Runner(Slot(), Batches(2), Recorder("inner", trace)).run(passes=1)
    without = []
    Runner(Batches(2), Recorder("inner", without)).run(passes=1)
    assert trace == without


def test_a_held_item_is_a_ring_like_any_other():
    trace, plain = [], []
    Runner(Slot(Recorder("a", trace)), Batches(2), Recorder("b", trace)).run(passes=2)
    Runner(Recorder("a", plain), Batches(2), Recorder("b", plain)).run(passes=2)
    assert trace == plain


def test_items_are_exchanged_on_the_way_into_the_next_pass():
    trace = []
    slot = Slot(Recorder("a", trace))
    plan = {0: Recorder("b", trace), 1: None, 3: Recorder("c", trace)}
    Runner(slot, Batches(1), put_in_pass(slot, plan)).run(passes=5)
    one_pass = ["on_pass:in", "on_batch:in", "on_batch:out", "on_pass:out"]
    whole = ["initialize:in", *one_pass, "initialize:out"]
    assert trace == [f"{name}.{way}" for name in "abc" for way in whole]


def test_an_item_that_is_put_back_begins_anew():
    trace = []
    item = Recorder("a", trace)
    slot = Slot(item)
    Runner(slot, Batches(1), put_in_pass(slot, {0: None, 1: item})).run(passes=3)
    assert trace.count("a.initialize:in") == trace.count("a.initialize:out") == 2


def test_the_same_item_put_in_again_stays():
    trace = []
    item = Recorder("a", trace)
    slot = Slot(item)
    Runner(slot, Batches(1), put_in_pass(slot, {0: item})).run(passes=3)
    assert trace.count("a.initialize:in") == 1


def test_what_it_held_last_is_there_in_the_next_run():
    trace, slot = [], Slot()
    runner = Runner(slot, Batches(1))
    runner.run(passes=1)
    slot.put(Recorder("a", trace))
    runner.run(passes=1)
    assert trace.count("a.on_batch:in") == 1


@pytest.mark.parametrize("hook", ["initialize", "on_pass", "on_batch"])
@pytest.mark.parametrize("way", ["in", "out"])
def test_errors_of_the_item_are_those_of_any_ring(hook, way):
    outer, inner = [], []
    failing = Failing(hook, way)
    onion = Runner(Recorder("outer", outer), Slot(failing), Batches(2), Recorder("inner", inner))
    with pytest.raises(PlannedError):
        onion.run(passes=1)
    plain_outer, plain_inner = [], []
    plain = Runner(Recorder("outer", plain_outer), Failing(hook, way), Batches(2), Recorder("inner", plain_inner))
    with pytest.raises(PlannedError):
        plain.run(passes=1)
    assert (outer, inner) == (plain_outer, plain_inner)


def test_an_error_inside_appears_at_the_items_yields():
    trace = []
    with pytest.raises(PlannedError):
        Runner(Slot(Recorder("a", trace)), Batches(2), Failing("on_batch")).run(passes=1)
    plain = []
    with pytest.raises(PlannedError):
        Runner(Recorder("a", plain), Batches(2), Failing("on_batch")).run(passes=1)
    assert trace == plain


def test_an_item_may_skip_and_repeat_and_swallow():
    class Bend(RunnerItem):
        def on_batch(self, state):
            for _ in range(state.batch):
                with suppress(PlannedError):
                    yield

    inner = Recorder("inner")
    Runner(Slot(Bend()), Batches(3), inner, Failing("on_batch", times=1)).run(passes=1)
    assert inner.trace.count("inner.on_batch:in") == 0 + 1 + 2


def test_plain_hooks_run_on_the_way_in():
    calls = []
    item = Observer(
        initialize=lambda state: calls.append("run"),
        on_pass_begin=lambda state: calls.append("pass"),
        on_batch_begin=lambda state: calls.append(state.batch),
    )
    Runner(Slot(item), Batches(2)).run(passes=1)
    assert calls == ["run", "pass", 0, 1]


def test_a_hook_that_returns_something_is_told_as_anywhere():
    class Returns(RunnerItem):
        def on_pass(self, state):
            return 1

    with pytest.raises(HookError, match=r"returns \(Returns\)\.on_pass returned int; a hook returns nothing"):
        Runner(Slot(Returns()), Batches(1)).run(passes=1)


def test_a_tester_in_it_reports_under_its_name():
    slot = Slot()
    test = Runner(Batches(1), Observer(on_pass_end=lambda state: state.report({"x": 1.0})))
    runner = Runner(Tester(test), slot, Batches(2), put_in_pass(slot, {0: Tester(test)}))
    assert runner.run(passes=2).metrics == {"tester.x": 1.0, "tester-2.x": 1.0}


def test_two_slots_number_what_they_hold():
    slots = [Slot(EarlyStopping("a", 1)), Slot(EarlyStopping("b", 1))]
    Runner(*slots, Batches(1))
    assert [slot.item.name for slot in slots] == ["early_stopping", "early_stopping-2"]


def test_readings_are_the_items():
    class Telling(RunnerItem):
        def log_values(self):
            return {"x": 1.0}

    slot = Slot()
    assert slot.log_values() == {}
    assert Slot(Telling()).log_values() == {"x": 1.0}


def test_it_is_drawn_with_what_it_holds():
    assert "slot  Slot(Recorder)" in str(Runner(Slot(Recorder("a")), Batches(1)))
    assert "slot  Slot()" in str(Runner(Slot(), Batches(1)))


# -- saved and resumed -------------------------------------------------------------------------------------------------


def averaging(folder, seed=0, hold=True):
    network = toy_network(seed=seed)
    optimizer = paddle.optimizer.Adam(0.05, parameters=network.parameters())
    slot = Slot(MovingAverage(network, decay=0.9) if hold else None)
    return Runner(
        Saver(folder),
        slot,
        DataProvider(toy_examples(20), 4, shuffle=True, prefetch=0),
        ParameterUpdater(optimizer),
        GradientMachine(network),
    )


def average(runner):
    return [each.numpy().tobytes() for each in runner[Slot].item.average.parameters()]


@pytest.mark.parametrize("cut", [1, 5, 7])
def test_what_it_holds_is_saved_and_resumed(cut, tmp_path):
    uncut = averaging(tmp_path / "uncut")
    uncut.run(passes=2)
    averaging(tmp_path / "cut").run(passes=2, steps=cut)
    resumed = averaging(tmp_path / "cut", seed=3)
    resumed.run(passes=2)
    assert average(resumed) == average(uncut)


def test_a_resumed_run_begins_with_what_was_held(tmp_path):
    averaging(tmp_path).run(steps=2)
    wanted = re.escape(
        "slot was saved with MovingAverage(ToyNetwork, decay=0.9) in it, and this run would begin with nothing; put in "
        "what was saved before the run, as Slot(MovingAverage(ToyNetwork, decay=0.9)) or with "
        "put(MovingAverage(ToyNetwork, decay=0.9)), and exchange it once the run is under way."
    )
    with pytest.raises(CheckpointError, match=wanted):
        averaging(tmp_path, hold=False).run(passes=2)


def test_a_resumed_run_begins_with_nothing_where_nothing_was_held(tmp_path):
    averaging(tmp_path, hold=False).run(steps=2)
    wanted = r"with nothing in it, .* begin with MovingAverage\(.*\); .*, as Slot\(\) or with put\(None\), and"
    with pytest.raises(CheckpointError, match=wanted):
        averaging(tmp_path).run(passes=2)


def with_tester(folder, every):
    test = Runner(Batches(1), Observer(on_pass_end=lambda state: state.report({"x": 1.0})))
    return Runner(Saver(folder), Slot(Tester(test, every=every)), Batches(4))


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


def test_a_test_onion_that_shares_the_slot_has_the_item_that_is_there_and_exchanges_none():
    trace = []
    slot = Slot(Recorder("a", trace))
    training = Runner(slot, Batches(1), put_in_pass(slot, {0: Recorder("b", trace)}))
    test = Runner(slot, Batches(2))
    training.insert_before(Slot, Tester(test, every=1)).run(passes=2)
    batch = lambda name: [f"{name}.on_batch:in", f"{name}.on_batch:out"]  # noqa: E731
    run = lambda name, batches: [  # noqa: E731
        f"{name}.on_pass:in",
        *batch(name) * batches,
        f"{name}.on_pass:out",
    ]
    test_of = lambda name: [f"{name}.initialize:in", *run(name, 2), f"{name}.initialize:out"]  # noqa: E731
    outer = lambda name: [f"{name}.on_pass:in", *batch(name), *test_of(name), f"{name}.on_pass:out"]  # noqa: E731
    whole = lambda name: [f"{name}.initialize:in", *outer(name), f"{name}.initialize:out"]  # noqa: E731
    assert trace == [*whole("a"), *whole("b")]


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("item", [Recorder, 1, lambda state: None])
def test_what_is_no_item_is_refused(item):
    with pytest.raises(CompositionError, match="Slot holds an item or None"):
        Slot(item)
    with pytest.raises(CompositionError, match="Slot holds an item or None"):
        Slot().put(item)


def test_a_runner_is_refused():
    with pytest.raises(CompositionError, match="runner holds items of its own; give each a slot"):
        Slot(Runner(Recorder("a")))


def test_a_slot_is_refused():
    with pytest.raises(CompositionError, match="Slot cannot hold another slot"):
        Slot(Slot())
    slot = Slot()
    Runner(slot, Batches(1))
    with pytest.raises(CompositionError, match="Slot cannot hold another slot"):
        slot.put(slot)


def test_a_coroutine_is_refused():
    class Later(RunnerItem):
        async def on_batch(self, state):
            pass

    with pytest.raises(CompositionError, match="is a coroutine"):
        Slot(Later())


def test_what_cannot_work_there_is_refused_and_nothing_is_exchanged(tmp_path):
    trace = []
    slot = Slot(Recorder("a", trace))
    network = toy_network()
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))

    def put(state):
        with pytest.raises(CompositionError, match="no gradient machine inside it"):
            slot.put(updater)

    Runner(slot, Batches(1), Observer(on_batch_begin=put)).run(passes=2)
    assert trace.count("a.on_batch:in") == 2
    with pytest.raises(CompositionError, match="no gradient machine inside it"):
        Runner(Slot(updater), Batches(1))
    with pytest.raises(CompositionError) as caught:
        Runner(Slot(updater), Batches(1))
    assert str(caught.value).count("initialize  pass  batch") == 1
    slot.put(updater)
    with pytest.raises(CompositionError, match="no gradient machine inside it"):
        Runner(slot, Batches(1)).run(passes=1)


def test_what_can_work_there_is_admitted():
    network = toy_network()
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
    before = network.linear.weight.numpy().tobytes()
    Runner(DataProvider(toy_examples(8)), Slot(updater), GradientMachine(network)).run(passes=1)
    assert network.linear.weight.numpy().tobytes() != before


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(CompositionError, match="two items are named 'a'"):
        Runner(Slot(Recorder("a")), Recorder("a"), Batches(1))
    with pytest.raises(CompositionError, match="two items are named 'a'"):
        Runner(Slot(Recorder("a")), Slot(Recorder("a")), Batches(1))


def test_an_item_that_stands_elsewhere_is_refused():
    item = Recorder("a")
    with pytest.raises(CompositionError, match="occurs twice in one runner"):
        Runner(Slot(item), item, Batches(1))
