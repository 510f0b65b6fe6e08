"""Slot: a place for an item that comes and goes between passes."""

from contextlib import suppress

import paddle
import pytest

from onion import (
    CheckpointError,
    CompositionError,
    DataProvider,
    EarlyStop,
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
    slots = [Slot(EarlyStop("a", 1)), Slot(EarlyStop("b", 1))]
    Runner(*slots, Batches(1))
    assert [slot.item.name for slot in slots] == ["early_stop", "early_stop-2"]


def test_readings_are_the_items():
    class Telling(RunnerItem):
        def readings(self):
            return {"x": 1.0}

    slot = Slot()
    assert slot.readings() == {}
    assert Slot(Telling()).readings() == {"x": 1.0}


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


def test_a_resumed_run_holds_what_was_held(tmp_path):
    averaging(tmp_path).run(steps=2)
    with pytest.raises(
        CheckpointError, match=r"saved with MovingAverage in it, and now holds nothing; make it as Slot\(M"
    ):
        averaging(tmp_path, hold=False).run(passes=2)


def test_a_resumed_run_holds_nothing_where_nothing_was_held(tmp_path):
    averaging(tmp_path, hold=False).run(steps=2)
    with pytest.raises(
        CheckpointError, match=r"saved with nothing in it, and now holds MovingAverage; make it as Slot\(\)"
    ):
        averaging(tmp_path).run(passes=2)


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
    with pytest.raises(CompositionError, match="stands twice in one onion"):
        Runner(Slot(item), item, Batches(1))
