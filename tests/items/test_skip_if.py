"""SkipIf: batches that are passed over."""

import paddle
import pytest

from onion import CompositionError, DataProvider, GradientMachine, ParameterUpdater, Runner, Saver, SkipIf
from onion.engine.periodic import Periodic
from onion.testing import Batches, Failing, PlannedError, Recorder, toy_examples, toy_network


def odd(state):
    return state.batch % 2


def test_the_inside_runs_for_the_other_batches_and_they_alone_count():
    outer, inner = Recorder("outer"), Recorder("inner")
    skip = SkipIf(odd)
    state = Runner(Batches(5), outer, skip, inner).run(passes=1)
    assert (state.step, state.batch_id) == (3, 0)
    assert inner.trace.count("inner.on_batch:in") == 3
    assert outer.trace.count("outer.on_batch:out") == 5
    assert skip.log_values() == {"skipped": 2}


def test_a_skipped_batch_completes_no_period():
    class Acting(Periodic):
        def act(self, state):
            acted.append((state.batch, state.step))

    acted = []
    Runner(Batches(6), Acting(1), SkipIf(odd)).run(passes=1)
    assert acted == [(0, 1), (2, 2), (4, 3)]


def test_a_skipped_batch_moves_nothing():
    def trained(*rings, examples):
        network = toy_network()
        optimizer = paddle.optimizer.AdamW(
            paddle.optimizer.lr.StepDecay(0.05, 2), parameters=network.parameters(), weight_decay=0.1
        )
        Runner(DataProvider(examples, 4), *rings, ParameterUpdater(optimizer), GradientMachine(network)).run(passes=2)
        return network.linear.weight.numpy().tobytes(), optimizer.get_lr()

    all_of_them = toy_examples(16)
    some = [example for i, example in enumerate(all_of_them) if i // 4 % 2 == 0]
    assert trained(SkipIf(lambda state: state.batch_id % 2), examples=all_of_them) == trained(examples=some)


def test_in_a_nested_runner_the_rest_of_that_runner_is_skipped_and_the_batch_counts():
    trace = []
    state = Runner(Batches(4), Runner(SkipIf(odd), Recorder("a", trace)), Recorder("b", trace)).run(passes=1)
    assert trace.count("a.on_batch:in") == 2
    assert trace.count("b.on_batch:in") == 4
    assert state.step == 4


def test_a_second_run_counts_anew():
    skip = SkipIf(odd)
    runner = Runner(Batches(5), skip)
    runner.run(passes=1)
    runner.run(passes=1)
    assert skip.log_values() == {"skipped": 2}


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_resumed_run_goes_on_counting_and_ends_with_the_same_bits(cut, tmp_path):
    def onion(folder, seed=0):
        network = toy_network(seed=seed)
        optimizer = paddle.optimizer.Adam(0.05, parameters=network.parameters())
        return Runner(
            Saver(tmp_path / folder, every=1),
            DataProvider(toy_examples(24), 4, shuffle=True, prefetch=0),
            SkipIf(lambda state: state.batch["y"][0, 0] < 0),
            ParameterUpdater(optimizer),
            GradientMachine(network),
        )

    def outcome(runner):
        weight = runner[GradientMachine].network.linear.weight.numpy().tobytes()
        return weight, runner[SkipIf].state_dict(), runner[DataProvider].state_dict()

    uncut = onion("uncut")
    uncut.run(passes=2)
    assert uncut[SkipIf].log_values()["skipped"] > 1
    onion("cut").run(passes=2, steps=cut)
    resumed = onion("cut", seed=1)
    resumed.run(passes=2)
    assert outcome(resumed) == outcome(uncut)


def test_an_error_of_the_inside_passes():
    with pytest.raises(PlannedError):
        Runner(Batches(5), SkipIf(odd), Failing("on_batch", step=1)).run(passes=1)


def test_what_is_no_plain_function_is_refused():
    async def coroutine(state):
        return True

    def generator(state):
        yield True

    for wrong in (coroutine, generator, "odd", None):
        with pytest.raises(CompositionError, match="predicate must be a plain function of the state, got "):
            SkipIf(wrong)
