"""SkipIf: batches that are passed over."""

import paddle
import pytest

from onion import CompositionError, DataProvider, GradientMachine, Runner, Saver, SkipIf
from onion.testing import Batches, Failing, PlannedError, Recorder, toy_examples, toy_network
from tests.items.learning import examples, learning
from tests.toys import bits


def odd(state):
    return state.batch % 2


def test_the_inside_runs_for_the_other_batches_and_they_alone_count():
    outer, inner, skip = Recorder("outer"), Recorder("inner"), SkipIf(odd)
    runner = Runner(Batches(5), outer, skip, inner)
    for runs in (1, 2):
        state = runner.run(passes=1)
        assert (state.step, state.batch_id) == (3, 0)
        assert inner.trace.count("inner.on_batch:in") == 3 * runs
        assert outer.trace.count("outer.on_batch:out") == 5 * runs
        assert skip.log_values() == {"skipped": 2}


def test_a_skipped_batch_moves_nothing():
    def trained(*rings, examples):
        network = toy_network()
        schedule = paddle.optimizer.lr.StepDecay(0.05, 2)
        updater, machine = learning(network, optimizer="AdamW", rate=schedule, weight_decay=0.1)
        Runner(DataProvider(examples, 4), *rings, updater, machine).run(passes=2)
        return bits(network), schedule.get_lr()

    all_of_them = toy_examples(16)
    some = [example for i, example in enumerate(all_of_them) if i // 4 % 2 == 0]
    assert trained(SkipIf(lambda state: state.batch_id % 2), examples=all_of_them) == trained(examples=some)


def test_in_a_nested_runner_the_rest_of_that_runner_is_skipped_and_the_batch_counts():
    trace = []
    runner = Runner(Batches(4), Runner(SkipIf(odd), Recorder("a", trace)), Recorder("b", trace))
    assert runner.run(passes=1).step == 4
    assert (trace.count("a.on_batch:in"), trace.count("b.on_batch:in")) == (2, 4)


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_resumed_run_goes_on_counting_and_ends_with_the_same_bits(cut, tmp_path):
    def onion(folder, seed=0):
        skip = SkipIf(lambda state: state.batch["y"][0, 0] < 0)
        trained = learning(toy_network(seed=seed), optimizer="Adam")
        return Runner(Saver(tmp_path / folder, every=1), examples(24, shuffle=True), skip, *trained)

    def outcome(runner):
        return bits(runner[GradientMachine].network), runner[SkipIf].state_dict(), runner[DataProvider].state_dict()

    uncut, cut_short, resumed = onion("uncut"), onion("cut"), onion("cut", seed=1)
    uncut.run(passes=2)
    assert uncut[SkipIf].log_values()["skipped"] > 1
    cut_short.run(passes=2, steps=cut)
    resumed.run(passes=2)
    assert outcome(resumed) == outcome(uncut)


def test_an_error_of_the_inside_passes():
    with pytest.raises(PlannedError):
        Runner(Batches(5), SkipIf(odd), Failing("on_batch", step=1)).run(passes=1)


async def coroutine(state):
    return True


def generator(state):
    yield True


@pytest.mark.parametrize("wrong", [coroutine, generator, "odd", None])
def test_what_is_no_plain_function_is_refused(wrong):
    with pytest.raises(CompositionError, match="predicate must be a plain function of the state, got "):
        SkipIf(wrong)
