"""ReplayBuffer: a fair sample of the past, mixed into each batch. Rows as arrays, as a checkpoint stores them."""

import json
from collections import Counter, namedtuple

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion import (
    CheckpointError,
    CompositionError,
    DataError,
    DataProvider,
    Evaluator,
    Observer,
    Repeat,
    Runner,
    RunnerItem,
    Saver,
)
from onion.checkpointing import checkpoint
from onion.online.learning.array_rows import as_arrays, from_arrays, own
from onion.online.learning.replay_buffer import MAX_RATIO, ReplayBuffer
from onion.testing import Batches, Failing, PlannedError, assert_resumes_exactly, toy_examples, toy_network
from tests.abilities import needs_draws_again
from tests.onions.learning_online import LEARNING_ONLINE
from tests.online.toys import Each, learning


def numbered(count, size, start=0):
    """Return batches of samples that are their numbers."""
    return [np.arange(begin, begin + size) for begin in range(start, start + count * size, size)]


def mixed(batches, buffer, *outer):
    """Return the batches as seen inside of the buffer."""
    seen = []
    inside = Observer(on_batch_begin=lambda state: seen.append(state.batch))
    Runner(Batches(batches), *outer, buffer, inside).run(passes=1)
    return seen


# -- mixing ------------------------------------------------------------------------------------------------------------


def test_old_samples_come_first_none_twice_and_never_new_ones():
    batches = numbered(30, 4)
    for number, (batch, found) in enumerate(zip(batches, mixed(batches, ReplayBuffer(50, 2.0)), strict=True)):
        old, new = found[:-4].tolist(), found[-4:].tolist()
        assert new == batch.tolist()
        assert len(old) == len(set(old)) == min(8, 4 * number)
        assert all(each < batch[0] for each in old)


@pytest.mark.parametrize(
    ("ratio", "added"), [(0.0, [0, 0, 0, 0]), (0.5, [0, 1, 1, 1]), (0.3, [0, 1, 0, 1]), (2, [0, 2, 4, 4])]
)
def test_the_ratio_holds_in_the_long_run_and_fractions_are_carried_over(ratio, added):
    found = mixed(numbered(4, 2), ReplayBuffer(100, ratio))
    assert [len(each) - 2 for each in found] == added


def test_a_small_buffer_gives_all_it_has():
    found = mixed(numbered(3, 4), ReplayBuffer(3, 2.0))
    assert [len(each) for each in found] == [4, 7, 7]


def test_fields_of_a_sample_stay_together():
    batch = {"x": np.arange(4.0), "nested": (np.arange(4) * 2, ["0", "1", "2", "3"]), "task": "a"}
    second = {"x": np.arange(4.0, 8), "nested": (np.arange(4, 8) * 2, ["4", "5", "6", "7"]), "task": "b"}
    found = mixed([batch, second], ReplayBuffer(10, 1.0))[1]
    assert found["task"] == "b"
    assert len(found["x"]) == 8
    for x, double, text in zip(found["x"], *found["nested"], strict=True):
        assert double == 2 * x
        assert text == str(int(x))


def test_lists_and_named_tuples_are_batches_too():
    Pair = namedtuple("Pair", "x y")
    assert len(mixed([["a", "b"], ["c"]], ReplayBuffer(10, 1.0))[1]) == 2
    found = mixed([Pair(np.arange(2), ["a", "b"]), Pair(np.arange(2), ["c", "d"])], ReplayBuffer(10, 1.0))[1]
    assert type(found) is Pair
    assert len(found.x) == len(found.y) == 4


def test_the_data_items_own_batch_is_not_changed():
    batch = {"x": np.arange(2)}
    mixed([batch, batch], ReplayBuffer(10, 1.0))
    assert batch.keys() == {"x"}
    assert batch["x"].tolist() == [0, 1]


@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_a_batch_that_is_run_again_is_mixed_and_kept_once(ratio):
    buffer = ReplayBuffer(100, ratio)
    found = mixed(numbered(3, 2), buffer, Repeat(2))
    assert all(one is two for one, two in zip(found[::2], found[1::2], strict=True))
    assert buffer.log_values() == {"buffered": 6}


def test_the_same_batch_given_twice_is_two_batches():
    buffer = ReplayBuffer(100, 0.0)
    mixed([np.arange(2)] * 2, buffer)
    assert buffer.log_values() == {"buffered": 4}


def test_a_batch_that_is_retried_after_an_error_is_the_same():
    class Retry(RunnerItem):
        def on_batch(self, state):
            try:
                yield
            except PlannedError:
                yield

    seen, again = [], []
    fails = Failing("on_batch", "in", step=1, times=1)
    for trail, rings in ((seen, []), (again, [fails])):
        look = Observer(on_batch_end=lambda state, trail=trail: trail.append(state.batch.tolist()))
        Runner(Batches(numbered(3, 4)), look, Retry(), ReplayBuffer(10, 1.0), *rings).run(passes=1)
    assert seen == again


def test_an_evaluator_outside_sees_outputs_and_batch_of_one_length():
    lengths = []
    evaluator = Evaluator(Each(lambda outputs, batch: lengths.append((len(outputs), len(batch["x"])))))
    data = DataProvider(toy_examples(12), 4)
    Runner(evaluator, data, ReplayBuffer(10, 1.0), *learning(toy_network())).run(passes=1)
    assert lengths == [(4, 4), (8, 8), (8, 8)]


def test_batches_of_different_lengths_are_joined_by_the_users_function():
    def join(parts):
        longest = max(part.shape[1] for part in parts)
        return np.concatenate([np.pad(part, [(0, 0), (0, longest - part.shape[1])]) for part in parts])

    batches = [np.ones([2, 3], int), np.ones([2, 5], int)]
    assert mixed(batches, ReplayBuffer(9, 1.0, join=join))[1].tolist() == [[1, 1, 1, 0, 0]] * 2 + [[1] * 5] * 2
    with pytest.raises(DataError, match=r"replay_buffer: .* cannot be joined .*; pad all to one length, or give join="):
        mixed(batches, ReplayBuffer(9, 1.0))


# -- fair --------------------------------------------------------------------------------------------------------------


def kept(buffer):
    return np.concatenate(from_arrays(buffer.state_dict())).tolist()


def test_every_sample_is_kept_with_the_same_probability():
    """The places of 40 samples in a buffer of 10, over 2000 seeds: chi-squared of 39 degrees of freedom."""
    counts = Counter()
    for seed in range(2000):
        buffer = ReplayBuffer(10, 0.0, seed)
        mixed(numbered(5, 8), buffer)
        counts.update(kept(buffer))
    wanted = 2000 * 10 / 40
    assert sum((counts[each] - wanted) ** 2 / wanted for each in range(40)) < 62  # 1 % of the cases are above


def test_every_old_sample_is_drawn_with_the_same_probability():
    counts = Counter()
    for seed in range(2000):
        found = mixed([np.arange(20), np.array([20])], ReplayBuffer(20, 5.0, seed))[1]
        counts.update(found[:-1].tolist())
    assert sum((counts[each] - 500) ** 2 / 500 for each in range(20)) < 36  # 1 % of the cases are above
    assert sum(counts.values()) == 2000 * 5


def test_the_choice_depends_on_the_seed_alone_and_draws_from_no_global_generator():
    def found(seed):
        np.random.seed(np.random.randint(1000))
        return [each.tolist() for each in mixed(numbered(20, 4), ReplayBuffer(20, 1.0, seed))]

    before = np.random.get_state(legacy=True)[1].tolist()
    first = [each.tolist() for each in mixed(numbered(20, 4), ReplayBuffer(20, 1.0, 1))]
    assert np.random.get_state(legacy=True)[1].tolist() == before
    assert found(1) == first
    assert found(2) != first


def test_a_second_run_starts_with_an_empty_buffer():
    buffer = ReplayBuffer(20, 1.0)
    first = [each.tolist() for each in mixed(numbered(9, 4), buffer)]
    assert [each.tolist() for each in mixed(numbered(9, 4), buffer)] == first


def test_memory_is_bounded_and_no_row_keeps_its_batch():
    buffer = ReplayBuffer(10, 1.0)
    mixed([{"x": each} for each in numbered(50, 8)], buffer)
    assert buffer.log_values() == {"buffered": 10}
    assert all(row["x"].base is None and len(row["x"]) == 1 for row in buffer._rows)
    buffer.load_state_dict(buffer.state_dict())
    assert all(row["x"].nbytes == 8 and (row["x"].base is None or row["x"].base.nbytes == 8) for row in buffer._rows)


# -- adjusted and saved ------------------------------------------------------------------------------------------------


def test_the_ratio_can_be_adjusted_during_the_run_and_is_saved():
    buffer = ReplayBuffer(100, 0.0)
    setting = buffer.adjustable()["ratio"]
    look = Observer(on_batch_begin=lambda state: setting.set(1) if state.batch_id == 2 else None)
    assert [len(each) for each in mixed(numbered(4, 2), buffer, look)] == [2, 2, 4, 4]
    assert (setting.low, setting.high, setting.get()) == (0, MAX_RATIO, 1)
    other = ReplayBuffer(100, 0.0)
    other.load_state_dict(buffer.state_dict())
    assert other.adjustable()["ratio"].get() == 1


@needs_draws_again
def test_a_resumed_run_has_the_same_buffer_and_draws_the_same(tmp_path):
    kind = LEARNING_ONLINE["replay buffer"]
    assert_resumes_exactly(kind.make, tmp_path, passes=kind.passes, cuts=[1, 4, 6])


def test_its_checkpoint_is_a_few_arrays(tmp_path):
    data, buffer = DataProvider(toy_examples(64), 4), ReplayBuffer(50, 1.0)
    Runner(Saver(tmp_path), data, buffer, *learning(toy_network())).run(passes=1)
    saved = checkpoint.newest(tmp_path).items["replay_buffer"]
    assert {key: each.shape for key, each in saved.items() if hasattr(each, "shape")} == {
        "kind": (50,),
        "shapes": (50 * 4,),
        "numbers.float32": (50 * 9,),
    }


# -- rows as arrays ----------------------------------------------------------------------------------------------------

ARRAYS = st.tuples(
    st.sampled_from(["float32", "float64", "int64", "uint8", "bool"]),
    st.lists(st.integers(0, 3), max_size=3),
    st.integers(0, 99),
).map(lambda each: np.full(each[1], each[2]).astype(each[0]) if each[1] else np.full([1], each[2]).astype(each[0]))
LEAVES = ARRAYS | st.text(max_size=3) | st.integers(-5, 5) | st.none() | st.lists(st.integers(0, 9), max_size=3)
ROWS = st.recursive(
    LEAVES,
    lambda inner: st.dictionaries(st.text(max_size=2), inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=5,
)


def same(one, other):
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return type(other) is dict and list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return type(other) is tuple and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@settings(max_examples=150)
@given(st.lists(ROWS, max_size=6))
def test_rows_are_restored_bit_identical_from_what_a_checkpoint_stores(rows):
    saved = as_arrays(rows)
    for key, value in saved.items():
        assert isinstance(value, np.ndarray | str), key
    assert same(tuple(rows), tuple(from_arrays(saved)))


def test_numpy_scalars_stay_numpy_scalars():
    (row,) = from_arrays(as_arrays([{"a": np.float32(1.5), "b": np.int64(2)}]))
    assert (type(row["a"]), type(row["b"])) == (np.float32, np.int64)


def test_rows_of_one_form_share_its_description():
    assert len(json.loads(as_arrays([{"x": np.zeros(n)} for n in range(9)])["kinds"])) == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"x": np.array(["a"])}, "an array of <U1, which cannot be saved"),
        ({"x": object()}, "Object of type object is not JSON serializable"),
    ],
)
def test_what_a_checkpoint_cannot_store_is_refused(row, message):
    with pytest.raises(CheckpointError, match=message):
        as_arrays([row])


def test_a_tensor_is_refused():
    with pytest.raises(DataError, match=r"the batch contains a tensor; convert it further inside"):
        own({"x": paddle.zeros([1])})


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "size .*, got 0"),
        ((1.5,), r"size .*, got 1\.5"),
        ((True,), "size .*, got True"),
        ((9, -0.1), "ratio .*, got -0"),
        ((9, 17), "ratio .*, got 17"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(CompositionError, match=message):
        ReplayBuffer(*arguments)


def test_a_batch_that_cannot_be_cut_is_refused():
    with pytest.raises(DataError, match="cannot determine how many examples the batch has"):
        mixed([{"x": np.zeros(2), "y": np.zeros(3)}], ReplayBuffer(9))
