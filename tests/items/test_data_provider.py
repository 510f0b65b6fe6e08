"""DataProvider: the batches of a pass, and the place in it."""

import random
import threading
from itertools import chain

import numpy as np
import pytest

from onion import CompositionError, DataError, DataProvider, Observer, Runner, RunnerItem, TaskData, TaskSampler
from onion.multitask.strategies import Uniform
from onion.testing import Batches, Failing, PlannedError
from tests.patience import PATIENCE


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
    seen = batches_of(DataProvider(list(range(6)), 3, lengths=lengths), passes=1)
    assert sorted(map(sorted, seen)) == [[0, 2, 4], [1, 3, 5]]


def test_collate_makes_the_batch():
    provider = DataProvider(["a", "bb"], 2, collate=lambda examples: np.array([len(each) for each in examples]))
    assert batches_of(provider, passes=1) == [[1, 2]]


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("done", range(8))
def test_the_place_in_a_pass_is_taken_up_by_a_new_provider(done, prefetch):
    def provider():
        return DataProvider(list(range(20)), 6, shuffle=True, lengths=[i % 5 for i in range(20)], prefetch=prefetch)

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
    assert resumed.log_values() == {"examples": 40}


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


def test_a_second_run_begins_with_no_example_handed_out():
    runner = Runner(provider := DataProvider(list(range(20)), 6))
    for steps in (3, 4, 8):
        runner.run(steps=steps)
        assert provider.log_values() == {"examples": {3: 18, 4: 20, 8: 40}[steps]}


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
    with pytest.raises(CompositionError, match="provides data too, and only the inner one would be read"):
        Runner(DataProvider([1, 2]), nest(DataProvider([3, 4])))
    with pytest.raises(CompositionError, match="provides data too"):
        Runner(Batches(2), nest(DataProvider([3, 4])))


# -- data that fail ----------------------------------------------------------------------------------------------------


class Once:
    """Examples, one of which cannot be read the first time."""

    def __init__(self, examples, at, error):
        self.examples, self.at, self.error = examples, at, error

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, index):
        if index == self.at and self.error is not None:
            error, self.error = self.error, None
            raise error
        return self.examples[index]

    def __call__(self):
        return (self[index] for index in range(len(self)))


class Keeper(RunnerItem):
    """Stands around a provider and keeps what it would save when an error comes by."""

    def __init__(self, provider):
        self.provider, self.saved = provider, []

    def on_pass(self, state):
        try:
            yield
        except Exception:
            self.saved.append((state.pass_id, state.batch_id, state.step, self.provider.state_dict()))
            raise


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("kind", ["indexed", "shuffled", "stream"])
@pytest.mark.parametrize("at", [0, 2, 5, 7])
def test_after_an_error_the_place_is_that_of_the_batch_that_failed(at, kind, prefetch):
    shuffle = {"shuffle": True, "seed": 3} if kind == "shuffled" else {}

    def provider(error=None):
        source = Once([10, 11, 12, 13, 14, 15, 16, 17], at, error)
        return DataProvider(source.__call__ if kind == "stream" else source, 2, prefetch=prefetch, **shuffle)

    uncut = batches_of(provider(), passes=1)
    first, seen = provider(OSError("no disk")), []
    keeper = Keeper(first)
    look = Observer(on_batch_begin=lambda state: seen.append(state.batch.tolist()))
    with pytest.raises(OSError, match="no disk") as caught:
        Runner(keeper, look, first).run(passes=1)
    ((*place, saved),) = keeper.saved
    assert saved == {"batch": len(seen), "examples": 2 * len(seen)} == first.state_dict()
    assert place == [0, len(seen), len(seen)]
    assert caught.value.__notes__[-1] == f"data_provider, pass 0, batch {len(seen)} (both from 0)"
    assert threads() == []

    resumed = provider()
    resumed.load_state_dict(saved)
    assert seen + batches_of(resumed, passes=1) == uncut


def test_the_place_counts_from_the_beginning_of_the_pass_in_a_resumed_run_too():
    provider = DataProvider(Once(list(range(8)), 5, DataError("line 6 is broken")), 2)
    provider.load_state_dict({"batch": 1, "examples": 2})
    told = r"^data_provider, pass 0, batch 2 \(both from 0\): example 5 \(from 0\): line 6 is broken$"
    with pytest.raises(DataError, match=told):
        batches_of(provider, passes=1)


def test_a_pass_that_cannot_begin_says_which():
    provider = DataProvider(iter(range(4)), 2)
    with pytest.raises(DataError, match=r"^data_provider, pass 1, batch 0 \(both from 0\): the iterator is exhausted"):
        batches_of(provider, passes=2)


def test_a_source_that_ends_before_the_place_says_what_may_have_changed():
    provider = DataProvider(lambda: iter(range(4)), 2)
    provider.load_state_dict({"batch": 3, "examples": 6})
    told = r"cannot continue after batch 3 of this pass: it has 2 batches; did the data or the batch_size change"
    with pytest.raises(DataError, match=told):
        batches_of(provider, passes=1)


def test_a_length_that_changes_is_told_with_both_numbers():
    data = [1, 2, 3, 4]
    with pytest.raises(DataError, match=r"pass 1, batch 0 .*: the data source has 5 examples now, but had 4"):
        Runner(DataProvider(data, 2), Observer(on_pass_end=lambda state: data.append(5))).run(passes=2)


def test_a_source_that_gives_nothing_ends_the_run_when_patience_is_over():
    entered, release = threading.Event(), threading.Event()

    def source():
        yield from range(4)
        entered.set()
        release.wait(PATIENCE)

    provider = DataProvider(source, 2, prefetch=3, timeout=0.05)
    until_both_are_there = Observer(on_pass_begin=lambda state: entered.wait(PATIENCE))
    told = r"^data_provider, pass 0, batch 2 \(both from 0\): the data source has returned nothing for 0.05 s"
    with pytest.raises(DataError, match=told):
        Runner(provider, until_both_are_there).run(passes=1)
    assert provider.state_dict() == {"batch": 2, "examples": 4}
    release.set()
    for thread in threads():
        thread.join(PATIENCE)


def test_patience_needs_the_thread():
    with pytest.raises(ValueError, match="timeout= needs the background thread"):
        DataProvider([1], timeout=1, prefetch=0)


def test_a_task_sampler_goes_on_with_the_choice_that_failed():
    """Its strategy and its generator have moved on; the task and its batch are those of the run that did not fail."""

    def sampler(error=None):
        tasks = {
            "a": TaskData(DataProvider(Once(list(range(12)), 4, error), 2)),
            "b": TaskData(DataProvider(list(range(12)), 2)),
        }
        return TaskSampler(tasks, Uniform(), seed=5)

    def drawn(data, seen):
        look = Observer(on_batch_begin=lambda state: seen.append((state.task, state.batch.tolist())))
        Runner(look, data).run(passes=1)
        return seen

    uncut, seen = drawn(sampler(), []), []
    first = sampler(ValueError("no number"))
    with pytest.raises(ValueError, match="no number") as caught:
        drawn(first, seen)
    assert caught.value.__notes__ == [
        "example 4 (from 0)",
        "task_sampler, the task 'a', pass 0, batch 2 (both from 0)",
    ]
    resumed = sampler()
    resumed.load_state_dict(first.state_dict())
    assert drawn(resumed, seen) == uncut
    assert resumed.state_dict()["chosen"] is None
