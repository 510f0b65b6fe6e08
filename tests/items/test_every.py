"""Every: a ring that is there every n-th batch only."""

from itertools import pairwise

import pytest

from onion import CompositionError, Every, GradientMachine, Observer, Repeat, Runner, RunnerItem, SkipIf
from onion.testing import Batches, Failing, PlannedError, Recorder, toy_network
from tests.items.learning import examples, learning, updater
from tests.rings import Forgive, Watch
from tests.toys import bits


def batch_rings(trace):
    return [entry.replace(".on_batch", "") for entry in trace if "on_batch" in entry]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_the_ring_is_there_every_nth_batch_over_all_passes_and_the_inside_always(n):
    trace = []
    ring, inner = Recorder("ring", trace), Recorder("inner", trace)
    assert Runner(Batches(4), Every(n, ring), inner).run(passes=3).step == 12
    assert trace.count("inner.on_batch:out") == 12
    assert trace.count("ring.on_batch:out") == 12 // n


def test_in_its_turn_the_ring_surrounds_what_is_further_in():
    trace = []
    Runner(Batches(2), Every(2, Recorder("ring", trace)), Recorder("inner", trace)).run(passes=1)
    assert batch_rings(trace) == ["inner:in", "inner:out", "ring:in", "inner:in", "inner:out", "ring:out"]


def test_the_rings_around_run_and_passes_are_always_there():
    trace = []
    Runner(Every(100, Recorder("ring", trace)), Batches(1)).run(passes=2)
    passes = ["ring.on_pass:in", "ring.on_pass:out"] * 2
    assert trace == ["ring.initialize:in", *passes, "ring.initialize:out"]


def test_a_plain_hook_runs_on_the_way_in_and_an_item_without_one_changes_nothing():
    note = Watch(lambda state: state.next_step)
    assert Runner(Batches(7), Every(3, note), Every(2, Observer(initialize=print))).run(passes=1).step == 7
    assert note.seen == [3, 6]


def test_a_ring_may_yield_several_times_or_not_at_all():
    inner = Recorder("inner")
    state = Runner(Batches(4), Every(2, Repeat(3)), inner).run(passes=1)
    assert (inner.trace.count("inner.on_batch:out"), state.step) == (1 + 3 + 1 + 3, 4)
    assert Runner(Batches(4), Every(2, SkipIf(lambda state: state.batch == 1))).run(passes=1).step == 3


def test_errors_pass_through_the_ring_and_may_be_swallowed_there():
    swallowed = []
    every = Every(2, Forgive(call=lambda state: swallowed.append(state.next_step)))
    Runner(Batches(3), every, Failing("on_batch", step=1, times=1)).run(passes=1)
    assert swallowed == [2]
    with pytest.raises(PlannedError):
        Runner(Batches(3), every, Failing("on_batch", step=0)).run(passes=1)


def test_skipped_batches_do_not_count_and_repeated_ones_keep_their_turn():
    note = Watch(lambda state: state.batch)
    Runner(Batches(10), SkipIf(lambda state: state.batch % 2), Repeat(3), Every(2, note)).run(passes=1)
    assert note.seen == [2] * 3 + [6] * 3


def test_a_runner_winds_and_unwinds_every_nth_batch_and_the_outer_onion_always_continues():
    trace = []
    a, b, c = (Recorder(name, trace) for name in "abc")
    assert Runner(Batches(4), Every(2, Runner(a, b)), c).run(passes=1).step == 4
    assert batch_rings(trace) == ["c:in", "c:out", "a:in", "b:in", "b:out", "a:out", "c:in", "c:out"] * 2


def test_its_networks_move_in_its_turn_only():
    networks = [toy_network(), toy_network(seed=1)]
    one, other = (Runner(*learning(network)) for network in networks)
    watch = Watch(lambda state: [bits(network) for network in networks])
    Runner(watch, examples(28), one, Every(3, other)).run(passes=1)
    moved = [[now != then for then, now in zip(*both, strict=True)] for both in pairwise(watch.seen)]
    assert moved == [[True, step % 3 == 0] for step in range(1, 7)]


# -- as a part of the onion --------------------------------------------------------------------------------------------


def test_its_item_is_found_named_and_drawn():
    runner = Runner(Batches(1), Repeat(1), Every(5, Repeat(3)))
    assert [item.name for item in runner] == ["batches", "repeat", "every", "repeat-2"]
    drawing = str(runner)
    assert "every  Every(n=5)" in drawing
    assert drawing.index("Every(n=5)") < drawing.index("Repeat(n=3)")


def test_it_is_removed_and_replaced_as_a_whole_or_with_its_item():
    runner = Runner(Batches(6), Every(3, Recorder("a")))
    assert "a" not in runner.without(Every)
    assert [item.name for item in runner.without("a")] == ["batches"]
    b = Recorder("b")
    runner.replace(Every, Every(2, b)).run(passes=1)
    assert b.trace.count("b.on_batch:in") == 3
    assert runner.insert_after(Every, Recorder("c")).run(passes=1).step == 6


def test_an_item_that_replaces_its_own_keeps_the_period_and_the_name():
    every, b = Every(3, Recorder("a")), Recorder("b")
    every.name = "third"
    other = Runner(Batches(6), every).replace("a", b)
    other.run(passes=1)
    assert b.trace.count("b.on_batch:in") == 2
    assert [item.name for item in other] == ["batches", "third", "b"]
    assert every.items[0].name == "a"


def test_items_of_its_runner_are_removed_and_joined_by_others():
    trace = []
    a, b, c = (Recorder(name, trace) for name in "abc")
    Runner(Batches(4), Every(2, Runner(a, b))).without("a").insert_after("b", c).run(passes=1)
    assert batch_rings(trace) == ["b:in", "c:in", "c:out", "b:out"] * 2


def test_timing_leaves_the_beat_as_it_is_and_looks_into_its_runner():
    ring = Recorder("ring")
    timed = Runner(Batches(6), Every(3, Runner(ring, name="inner"))).timed()
    timed.run(passes=1)
    assert ring.trace.count("ring.on_batch:in") == 2
    assert {"every", "ring"} <= set(str(timed.timing()).split())


# -- what is refused ---------------------------------------------------------------------------------------------------


class Later(RunnerItem):
    async def on_batch(self, state):
        pass


@pytest.mark.parametrize(
    ("n", "item", "said"),
    [
        *((n, Recorder("a"), "must be an integer >= 1") for n in (0, -1, True, 2.0, "2", None)),
        *((2, item, "Every holds an item") for item in (None, Recorder, lambda state: None)),
        (2, Later(), "is a coroutine"),
    ],
)
def test_wrong_periods_and_items_are_refused(n, item, said):
    with pytest.raises(CompositionError, match=said):
        Every(n, item)


def test_a_second_item_is_refused_with_what_to_write():
    with pytest.raises(CompositionError, match=r"would hold 2; replace 'every' as a whole, with Every\(2, Runner\("):
        Runner(Batches(1), Every(2, Recorder("a"))).insert_after("a", Recorder("b"))


def test_an_updater_alone_is_refused_and_comes_with_its_machine():
    network = toy_network()
    with pytest.raises(CompositionError, match="no gradient machine"):
        Runner(Batches(1), Every(2, updater(network)), GradientMachine(network))
