"""DataProvider: the batches of a pass, and the place in it."""

import threading

import numpy as np
import pytest

from onion import (
    CheckpointError,
    CompositionError,
    DataError,
    DataProvider,
    Observer,
    Runner,
    Saver,
    TaskData,
    TaskSampler,
)
from onion.data import Loader
from onion.multitask.strategies import Uniform
from onion.testing import Batches, Failing, PlannedError
from tests.patience import PATIENCE
from tests.rings import Watch


def batch_watch():
    return Watch(lambda state: state.batch.tolist())


def batches_of(provider, *rings, **limits):
    watch = batch_watch()
    Runner(watch, *rings, provider).run(**limits)
    return watch.seen


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("onion")]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"batch_size": 3},
        {"batch_size": 3, "drop_last": True},
        {"batch_size": 6, "shuffle": True, "seed": 1},
        {"batch_size": 6, "lengths": [i % 5 for i in range(40)]},
        {"tokens_per_batch": 60, "lengths": range(1, 41), "shuffle": True},
        {"batch_size": 7, "collate": lambda examples: np.array([sum(examples)])},
    ],
)
def test_the_batches_of_each_pass_are_those_of_a_loader(settings):
    loader = Loader(range(40), **settings)
    expected = [batch.tolist() for pass_id in (0, 1) for batch in loader.batches(pass_id)]
    assert batches_of(DataProvider(range(40), **settings), passes=2) == expected


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("done", range(8))
def test_the_place_in_a_pass_is_taken_up_by_a_new_provider(done, prefetch):
    def provider():
        return DataProvider(range(20), 6, shuffle=True, lengths=[i % 5 for i in range(20)], prefetch=prefetch)

    uncut = batches_of(provider(), passes=2)
    first, resumed = provider(), provider()
    taken = batches_of(first, steps=done)
    saved = first.state_dict()
    assert saved == {"batch": done % 4, "examples": sum(map(len, taken))}
    resumed.load_state_dict(saved)
    assert resumed.state_dict() == saved

    def begin(state):
        state.pass_id, state.batch_id, state.step = done // 4, done % 4, done

    assert taken + batches_of(resumed, Observer(initialize=begin), passes=2) == uncut
    assert resumed.log_values() == {"examples": 40}


def test_the_state_in_mid_pass_counts_what_was_handed_out_and_not_what_was_prepared():
    provider = DataProvider(range(20), 6, prefetch=3)
    states = Watch(lambda state: provider.state_dict()["batch"])
    Runner(states, provider).run(passes=2)
    assert states.seen == [1, 2, 3, 4] * 2
    assert provider.state_dict() == {"batch": 0, "examples": 40}


def test_a_second_run_begins_with_the_first_batch_and_no_example_handed_out():
    provider = DataProvider(range(20), 6)
    whole = batches_of(provider, passes=2)
    for steps, examples in ((3, 18), (4, 20), (8, 40)):
        assert batches_of(provider, steps=steps) == whole[:steps]
        assert provider.log_values() == {"examples": examples}


def test_a_run_with_batches_of_other_tokens_is_another_run(tmp_path):
    def run(tokens, lengths):
        data = DataProvider(list(range(8)), tokens_per_batch=tokens, lengths=lengths)
        Runner(Saver(tmp_path), data).run(passes=1, steps=1)

    run(4, [2] * 8)
    with pytest.raises(CheckpointError, match="data_provider: tokens_per_batch 4 there, 6 here"):
        run(6, [2] * 8)
    with pytest.raises(CheckpointError, match=r"data_provider: lengths 'crc32 \w+' there, 'crc32 \w+' here"):
        run(4, [2] * 7 + [1])


def test_a_pass_that_an_item_ended_is_over():
    provider = DataProvider(range(7), 3)
    stop = Observer(on_batch_end=lambda state: state.stop_pass("enough"))
    assert batches_of(provider, stop, passes=2) == [[0, 1, 2]] * 2
    assert provider.state_dict() == {"batch": 0, "examples": 6}


@pytest.mark.parametrize("way", ["in", "out"])
@pytest.mark.parametrize("hook", ["on_pass", "on_batch"])
def test_no_thread_outlives_a_cut_run_or_a_failed_pass(hook, way):
    provider = DataProvider(range(100), 3, prefetch=4)
    batches_of(provider, steps=2)
    assert threads() == []
    with pytest.raises(PlannedError):
        Runner(provider, Failing(hook, way)).run(passes=1)
    assert threads() == []


def test_a_missing_file_is_an_error_when_the_onion_is_built(tmp_path):
    with pytest.raises(DataError, match=r"missing\.tsv"):
        DataProvider(tmp_path / "missing.tsv")


@pytest.mark.parametrize("nest", [lambda item: item, Runner])
@pytest.mark.parametrize("other", [DataProvider([1, 2]), Batches(2)])
def test_two_that_provide_data_are_refused_wherever_they_are(other, nest):
    with pytest.raises(CompositionError, match="provides data too, and only the inner one would be read"):
        Runner(other, nest(DataProvider([3, 4])))


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


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("kind", ["indexed", "shuffled", "stream"])
@pytest.mark.parametrize("at", [0, 2, 5, 7])
def test_after_an_error_the_place_is_that_of_the_batch_that_failed(at, kind, prefetch):
    def provider(error=None):
        source = Once(range(10, 18), at, error)
        shuffle = {"shuffle": True, "seed": 3} if kind == "shuffled" else {}
        return DataProvider(source.__call__ if kind == "stream" else source, 2, prefetch=prefetch, **shuffle)

    uncut = batches_of(provider(), passes=1)
    first, resumed, watch = provider(OSError("no disk")), provider(), batch_watch()
    ended = Watch(lambda state: (state.pass_id, state.batch_id, state.step, first.state_dict()), "finalize")
    with pytest.raises(OSError, match="no disk") as caught:
        Runner(ended, watch, first).run(passes=1)
    done = len(watch.seen)
    saved = {"batch": done, "examples": 2 * done}
    assert ended.seen == [(0, done, done, saved)]
    assert first.state_dict() == saved
    assert caught.value.__notes__[-1] == f"data_provider, pass 0, batch {done} (both from 0)"
    assert threads() == []
    resumed.load_state_dict(saved)
    assert watch.seen + batches_of(resumed, passes=1) == uncut


BROKEN = r"pass 0, batch 2 \(both from 0\): example 5 \(from 0\): line 6 is broken$"
EXHAUSTED = r"pass 1, batch 0 \(both from 0\): the iterator is exhausted"
BEYOND = "cannot continue after batch 3 of this pass: it has 2 batches; did the data or the batch_size change"


@pytest.mark.parametrize(
    ("source", "done", "said"),
    [
        (Once(range(8), 5, DataError("line 6 is broken")), 1, BROKEN),
        (iter(range(4)), 0, EXHAUSTED),
        (range(4), 3, f"pass 0, batch 3 .*: {BEYOND}"),
        (lambda: iter(range(4)), 3, f"pass 0, batch 3 .*: {BEYOND}"),
    ],
    ids=["of an example", "of a pass that cannot begin", "beyond a sequence", "beyond a stream"],
)
def test_an_error_names_the_place_counted_from_the_beginning_of_the_pass(source, done, said):
    provider = DataProvider(source, 2)
    provider.load_state_dict({"batch": done, "examples": 2 * done})
    with pytest.raises(DataError, match=f"^data_provider, {said}"):
        batches_of(provider, passes=2)


def test_a_source_that_yields_nothing_is_an_error_after_the_timeout():
    entered, release = threading.Event(), threading.Event()

    def source():
        yield from range(4)
        entered.set()
        release.wait(PATIENCE)

    provider = DataProvider(source, 2, prefetch=3, timeout=0.05)
    until_both_are_there = Observer(on_pass_begin=lambda state: entered.wait(PATIENCE))
    said = r"^data_provider, pass 0, batch 2 \(both from 0\): the data source has returned nothing for 0.05 s"
    with pytest.raises(DataError, match=said):
        Runner(provider, until_both_are_there).run(passes=1)
    assert provider.state_dict() == {"batch": 2, "examples": 4}
    release.set()
    for thread in threads():
        thread.join(PATIENCE)


def test_a_task_sampler_continues_with_the_choice_that_failed():
    """Its strategy and its generator have moved on; the task and its batch are those of the run that did not fail."""

    def sampler(error=None):
        a, b = DataProvider(Once(range(12), 4, error), 2), DataProvider(range(12), 2)
        return TaskSampler({"a": TaskData(a), "b": TaskData(b)}, Uniform(), seed=5)

    def watch():
        return Watch(lambda state: (state.task, state.batch.tolist()))

    Runner(uncut := watch(), sampler()).run(passes=1)
    first, resumed, before, after = sampler(ValueError("no number")), sampler(), watch(), watch()
    with pytest.raises(ValueError, match="no number") as caught:
        Runner(before, first).run(passes=1)
    place = "task_sampler, the task 'a', pass 0, batch 2 (both from 0)"
    assert caught.value.__notes__ == ["example 4 (from 0)", place]
    resumed.load_state_dict(first.state_dict())
    Runner(after, resumed).run(passes=1)
    assert before.seen + after.seen == uncut.seen
    assert resumed.state_dict()["chosen"] is None
