"""SkipIf: batches that are passed over."""

import paddle
import pytest

from onion import CompositionError, DataProvider, Runner, SkipIf
from onion.testing import Batches, Recorder, toy_examples, toy_network
from tests.items.learning import learning
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


async def coroutine(state):
    return True


def generator(state):
    yield True


@pytest.mark.parametrize("wrong", [coroutine, generator, "odd", None])
def test_what_is_no_plain_function_is_refused(wrong):
    with pytest.raises(CompositionError, match="predicate must be a plain function of the state, got "):
        SkipIf(wrong)
