"""Every: a ring that is there every n-th batch only."""

import paddle
import pytest

from onion import (
    CompositionError,
    DataProvider,
    Every,
    GradientMachine,
    Observer,
    OnionError,
    ParameterUpdater,
    Repeat,
    Runner,
    RunnerItem,
    Saver,
    SkipIf,
    State,
)
from onion.testing import Batches, Failing, PlannedError, Recorder, toy_examples, toy_network


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_the_ring_is_there_every_nth_batch_over_all_passes_and_the_inside_always(n):
    trace = []
    ring, inner = Recorder("ring", trace), Recorder("inner", trace)
    state = Runner(Batches(4), Every(n, ring), inner).run(passes=3)
    assert state.step == 12
    assert trace.count("inner.on_batch:out") == 12
    assert trace.count("ring.on_batch:out") == 12 // n


def test_the_ring_surrounds_what_stands_further_in():
    trace = []
    Runner(Batches(2), Every(2, Recorder("ring", trace)), Recorder("inner", trace)).run(passes=1)
    assert [entry for entry in trace if "on_batch" in entry] == [
        "inner.on_batch:in",
        "inner.on_batch:out",
        "ring.on_batch:in",
        "inner.on_batch:in",
        "inner.on_batch:out",
        "ring.on_batch:out",
    ]


def test_the_rings_around_run_and_passes_always_stand():
    trace = []
    Runner(Every(100, Recorder("ring", trace)), Batches(1), Recorder("inner", trace)).run(passes=2)
    assert [entry for entry in trace if entry.startswith("ring")] == [
        "ring.initialize:in",
        *["ring.on_pass:in", "ring.on_pass:out"] * 2,
        "ring.initialize:out",
    ]


def test_a_plain_hook_runs_on_the_way_in():
    steps = []
    note = Observer(on_batch_begin=lambda state: steps.append(state.next_step))
    assert Runner(Batches(7), Every(3, note)).run(passes=1).step == 7
    assert steps == [3, 6]


def test_an_item_without_a_batch_ring_changes_nothing():
    assert Runner(Batches(3), Every(2, Observer(initialize=print))).run(passes=1).step == 3


def test_a_ring_may_yield_several_times_or_not_at_all():
    inner = Recorder("inner")
    state = Runner(Batches(4), Every(2, Repeat(3)), inner).run(passes=1)
    assert (inner.trace.count("inner.on_batch:out"), state.step) == (1 + 3 + 1 + 3, 4)
    state = Runner(Batches(4), Every(2, SkipIf(lambda state: state.batch == 1)), Recorder("a")).run(passes=1)
    assert state.step == 3


def test_errors_pass_through_the_ring_and_may_be_swallowed_there():
    class Swallow(RunnerItem):
        def on_batch(self, state):
            try:
                yield
            except PlannedError:
                swallowed.append(state.next_step)

    swallowed = []
    Runner(Batches(3), Every(2, Swallow()), Failing("on_batch", step=1, times=1)).run(passes=1)
    assert swallowed == [2]
    with pytest.raises(PlannedError):
        Runner(Batches(3), Every(2, Swallow()), Failing("on_batch", step=0)).run(passes=1)


def test_skipped_batches_are_not_counted():
    steps = []
    note = Observer(on_batch_begin=lambda state: steps.append(state.batch))
    Runner(Batches(10), SkipIf(lambda state: state.batch % 2), Every(2, note)).run(passes=1)
    assert steps == [2, 6]


def test_repeated_from_outside_a_batch_keeps_its_turn():
    ring = Recorder("ring")
    Runner(Batches(4), Repeat(3), Every(2, ring)).run(passes=1)
    assert ring.trace.count("ring.on_batch:in") == 2 * 3


# -- a runner ----------------------------------------------------------------------------------------------------------


def gan(folder, seed=0):
    """Two updaters, of which the second moves every third batch."""
    one, other = toy_network(seed=seed), toy_network(seed=seed + 1)
    updaters = [ParameterUpdater(paddle.optimizer.Adam(0.05, parameters=each.parameters())) for each in (one, other)]
    return Runner(
        Saver(folder, every=2),
        DataProvider(toy_examples(20), 4, shuffle=True, prefetch=0),
        Runner(updaters[0], GradientMachine(one)),
        Every(3, Runner(updaters[1], GradientMachine(other))),
    )


def bits(runner):
    items = [*runner.all(ParameterUpdater), *runner.all(GradientMachine)]
    return {item.name: {key: each.numpy().tobytes() for key, each in item.state_dict().items()} for item in items}


def test_a_runner_winds_and_unwinds_every_nth_batch_and_the_outer_onion_goes_on_always():
    trace = []
    nested = Runner(Recorder("a", trace), Recorder("b", trace))
    state = Runner(Batches(4), Every(2, nested), Recorder("c", trace)).run(passes=1)
    batches = [entry.replace(".on_batch", "") for entry in trace if "on_batch" in entry]
    assert batches == ["c:in", "c:out", "a:in", "b:in", "b:out", "a:out", "c:in", "c:out"] * 2
    assert state.step == 4


def test_its_networks_move_in_its_turn_only(tmp_path):
    runner = gan(tmp_path)
    moved = []
    for steps in range(1, 8):
        before = bits(runner)
        runner.run(steps=steps)
        after = bits(runner)
        moved.append([name for name in after if "machine" in name and after[name] != before[name]])
    assert moved == [
        ["gradient_machine", "gradient_machine-2"] if step % 3 == 0 else ["gradient_machine"] for step in range(1, 8)
    ]


@pytest.mark.parametrize("cut", range(1, 10))
def test_a_resumed_run_goes_on_in_the_same_beat_to_the_same_bits(cut, tmp_path):
    uncut = gan(tmp_path / "uncut")
    uncut.run(passes=2)
    gan(tmp_path / "cut").run(passes=2, steps=cut)
    resumed = gan(tmp_path / "cut", seed=7)
    resumed.run(passes=2)
    assert bits(resumed) == bits(uncut)


def test_the_items_of_its_runner_need_the_state_they_ask_for():
    class Mine(State):
        pass

    with pytest.raises(CompositionError, match="needs the State Mine"):
        Runner(Batches(1), Every(2, Runner(Recorder("a"), state=Mine)))


# -- as a part of the onion --------------------------------------------------------------------------------------------


def test_its_item_is_found_named_and_drawn():
    runner = Runner(Batches(1), Repeat(1), Every(5, Repeat(3)))
    assert [item.name for item in runner] == ["batches", "repeat", "every", "repeat-2"]
    drawing = str(runner)
    assert "every  Every(n=5)" in drawing
    assert drawing.index("Every(n=5)") < drawing.index("Repeat(n=3)")


def test_it_is_taken_out_and_exchanged_as_a_whole():
    a, b = Recorder("a"), Recorder("b")
    runner = Runner(Batches(6), Every(3, a))
    assert "a" not in runner.without(Every)
    runner.replace(Every, Every(2, b)).run(passes=1)
    assert b.trace.count("b.on_batch:in") == 3
    assert runner.insert_after(Every, Recorder("c")).run(passes=1).step == 6


def test_what_it_holds_is_exchanged_from_outside_and_keeps_the_period_and_the_name():
    trace, there = [], Every(3, Recorder("a"))
    there.name = "third"
    other = Runner(Batches(6), there).replace("a", Recorder("b", trace))
    other.run(passes=1)
    assert trace.count("b.on_batch:in") == 2
    assert [item.name for item in other] == ["batches", "third", "b"]
    assert there.items[0].name == "a"


def test_what_is_in_its_runner_is_taken_out_and_joined_by_others():
    trace = []
    runner = Runner(Batches(4), Every(2, Runner(Recorder("a", trace), Recorder("b", trace))))
    runner.without("a").insert_after("b", Recorder("c", trace)).run(passes=1)
    batches = [entry.replace(".on_batch", "") for entry in trace if "on_batch" in entry]
    assert batches == ["b:in", "c:in", "c:out", "b:out"] * 2


def test_it_goes_with_what_it_holds():
    assert [item.name for item in Runner(Batches(1), Every(2, Recorder("a"))).without("a")] == ["batches"]


def test_a_second_item_is_refused_with_what_to_write():
    with pytest.raises(CompositionError, match=r"would hold 2; replace 'every' as a whole, with Every\(2, Runner\("):
        Runner(Batches(1), Every(2, Recorder("a"))).insert_after("a", Recorder("b"))


def test_timing_leaves_the_beat_as_it_is_and_looks_into_its_runner():
    ring = Recorder("ring")
    timed = Runner(Batches(6), Every(3, Runner(ring, name="inner"))).timed()
    timed.run(passes=1)
    assert ring.trace.count("ring.on_batch:in") == 2
    assert {"every", "ring"} <= set(str(timed.timing()).split())


def test_an_updater_alone_is_refused_and_comes_with_its_machine():
    network = toy_network()
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
    with pytest.raises(CompositionError, match="no gradient machine"):
        Runner(Batches(1), Every(2, updater), GradientMachine(network))


@pytest.mark.parametrize("n", [0, -1, True, 2.0, "2", None])
def test_what_is_no_period_is_refused(n):
    with pytest.raises(CompositionError, match="must be an integer >= 1"):
        Every(n, Recorder("a"))


@pytest.mark.parametrize("item", [None, Recorder, lambda state: None])
def test_what_is_no_item_is_refused(item):
    with pytest.raises(CompositionError, match="Every holds an item"):
        Every(2, item)


def test_a_coroutine_is_refused():
    class Later(RunnerItem):
        async def on_batch(self, state):
            pass

    with pytest.raises(CompositionError, match="is a coroutine"):
        Every(2, Later())


def test_errors_of_hooks_are_those_of_any_onion():
    class Returns(RunnerItem):
        def on_pass(self, state):
            return 1

    with pytest.raises(OnionError, match="a hook returns nothing"):
        Runner(Every(2, Returns()), Batches(1)).run(passes=1)
