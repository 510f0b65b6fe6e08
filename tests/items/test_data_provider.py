"""DataProvider: the batches of a pass, and the place in it."""

import random
import threading
from itertools import chain

import numpy as np
import pytest

from onion import CompositionError, DataError, DataProvider, Observer, Runner
from onion.testing import Batches, Failing, PlannedError


def batches_of(provider, **limits):
    seen = []
    Runner(Observer(on_batch_begin=lambda state: seen.append(state.batch.tolist())), provider).run(**limits)
    return seen


def test_batches_come_in_order_and_the_last_may_be_short():
    assert batches_of(DataProvider(list(range(7)), 3), passes=2) == [[0, 1, 2], [3, 4, 5], [6]] * 2


def test_a_short_last_batch_can_be_dropped():
    assert batches_of(DataProvider(list(range(7)), 3, drop_last=True), passes=1) == [[0, 1, 2], [3, 4, 5]]


def test_batches_of_32_are_the_default():
    assert [len(batch) for batch in batches_of(DataProvider(list(range(40))), passes=1)] == [32, 8]


def test_shuffling_depends_on_seed_and_pass_only():
    def order(seed, **limits):
        random.seed(random.random())
        np.random.seed(random.randrange(1000))
        return batches_of(DataProvider(list(range(20)), 6, shuffle=True, seed=seed), **limits)

    assert order(1, passes=2) == order(1, passes=2)
    assert order(1, passes=1) != order(2, passes=1)
    both = order(1, passes=2)
    assert both[:4] != both[4:]
    assert all(sorted(chain(*each)) == list(range(20)) for each in (both[:4], both[4:]))


def test_buckets_put_examples_of_similar_length_together():
    lengths = [1, 9, 1, 9, 1, 9]
    seen = batches_of(DataProvider(list(range(6)), 3, length=lengths), passes=1)
    assert sorted(map(sorted, seen)) == [[0, 2, 4], [1, 3, 5]]


def test_collate_makes_the_batch():
    provider = DataProvider(["a", "bb"], 2, collate=lambda examples: np.array([len(each) for each in examples]))
    assert batches_of(provider, passes=1) == [[1, 2]]


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("done", range(8))
def test_the_place_in_a_pass_is_taken_up_by_a_new_provider(done, prefetch):
    def provider():
        return DataProvider(list(range(20)), 6, shuffle=True, length=[i % 5 for i in range(20)], prefetch=prefetch)

    uncut = batches_of(provider(), passes=2)
    first = provider()
    taken = batches_of(first, steps=done)
    saved = first.state_dict()
    assert saved == {"batch": done % 4, "examples": sum(map(len, taken))}

    resumed = provider()
    resumed.load_state_dict(saved)
    assert resumed.state_dict() == saved
    seen = []

    def begin(state):
        state.pass_id, state.batch_id, state.step = done // 4, done % 4, done

    Runner(Observer(initialize=begin, on_batch_begin=lambda state: seen.append(state.batch.tolist())), resumed).run(
        passes=2
    )
    assert taken + seen == uncut
    assert resumed.readings() == {"examples": 40}


def test_the_state_in_mid_pass_counts_what_was_handed_out_and_not_what_was_prepared():
    provider = DataProvider(list(range(20)), 6, prefetch=3)
    states = []
    Runner(Observer(on_batch_begin=lambda state: states.append(provider.state_dict()["batch"])), provider).run(passes=2)
    assert states == [1, 2, 3, 4] * 2
    assert provider.state_dict() == {"batch": 0, "examples": 40}


def test_a_second_run_begins_with_the_first_batch_though_the_first_was_cut():
    provider = DataProvider(list(range(7)), 3)
    assert batches_of(provider, steps=2) == [[0, 1, 2], [3, 4, 5]]
    assert batches_of(provider, passes=1) == [[0, 1, 2], [3, 4, 5], [6]]


def test_a_pass_that_an_item_ended_is_over():
    provider = DataProvider(list(range(7)), 3)
    seen = []
    Runner(
        Observer(
            on_batch_begin=lambda state: seen.append(state.batch.tolist()),
            on_batch_end=lambda state: state.stop_pass("enough"),
        ),
        provider,
    ).run(passes=2)
    assert seen == [[0, 1, 2]] * 2
    assert provider.state_dict() == {"batch": 0, "examples": 6}


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("onion")]


@pytest.mark.parametrize("way", ["in", "out"])
@pytest.mark.parametrize("hook", ["on_pass", "on_batch"])
def test_no_thread_outlives_a_failed_pass(hook, way):
    provider = DataProvider(list(range(100)), 3, prefetch=4)
    with pytest.raises(PlannedError):
        Runner(provider, Failing(hook, way)).run(passes=1)
    assert threads() == []


def test_no_thread_outlives_a_cut_run():
    batches_of(DataProvider(list(range(100)), 3, prefetch=4), steps=2)
    assert threads() == []


def test_an_error_in_the_data_reaches_the_run_at_its_place():
    def source():
        yield from range(4)
        raise DataError("line 5 is broken")

    seen = []
    runner = Runner(Observer(on_batch_begin=lambda state: seen.append(state.batch.tolist())), DataProvider(source, 2))
    with pytest.raises(DataError, match="line 5 is broken"):
        runner.run(passes=1)
    assert seen == [[0, 1], [2, 3]]


def test_a_place_beyond_the_data_says_what_may_have_changed():
    provider = DataProvider(list(range(4)), 2)
    provider.load_state_dict({"batch": 3, "examples": 6})
    with pytest.raises(DataError, match=r"it has 2 batches; did the data or the batch_size change"):
        Runner(provider).run(passes=1)


def test_a_file_is_read(tmp_path):
    (tmp_path / "numbers.jsonl").write_text('{"x": 1}\n{"x": 2}\n')
    seen = []
    Runner(
        Observer(on_batch_begin=lambda state: seen.append(state.batch["x"].tolist())),
        DataProvider(tmp_path / "numbers.jsonl", 2),
    ).run(passes=1)
    assert seen == [[1, 2]]


def test_a_missing_file_is_an_error_when_the_onion_is_built(tmp_path):
    with pytest.raises(DataError, match=r"missing\.tsv"):
        DataProvider(tmp_path / "missing.tsv")


@pytest.mark.parametrize("nest", [lambda item: item, Runner])
def test_two_that_bring_data_are_refused_wherever_they_stand(nest):
    with pytest.raises(CompositionError, match="brings data too, and only the one further in would be read"):
        Runner(DataProvider([1, 2]), nest(DataProvider([3, 4])))
    with pytest.raises(CompositionError, match="brings data too"):
        Runner(Batches(2), nest(DataProvider([3, 4])))
