"""What is recorded: kept only where an item writes it down, and read at once."""

import json

import numpy as np
import paddle
import pytest

from onion import Logger, Observer, OnionError, Runner, RunnerItem, State, Tester
from onion.monitoring.records import Histogram, Image, Records
from onion.testing import Batches

ALL = {float, Histogram, Image}


def recorded(call, kinds=ALL):
    state = State(records=Records(kinds))
    call(state)
    return state.records.since(0, ALL)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.array([2.0]), paddle.full([1], 2.0)])
def test_a_scalar_is_a_number_of_any_kind(value):
    found = recorded(lambda state: state.record_scalar("a", value))["a"]
    assert (found, type(found)) == (2.0, float)


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1.0, 1.0, 4.0],
        np.array([[0, 1], [1, 4]]),
        paddle.to_tensor([0.0, 1.0, 1.0, 4.0]),
        paddle.to_tensor([0.0, 1.0, 1.0, 4.0]).astype("bfloat16"),
        [0.0, 1.0, 1.0, 4.0, float("nan"), float("inf")],
    ],
    ids=["list", "array", "tensor", "16 bits", "not all finite"],
)
def test_a_histogram_counts_what_is_finite(values):
    found = recorded(lambda state: state.record_histogram("a", values))["a"]
    assert (found.counts.sum(), len(found.counts), len(found.edges)) == (4, 64, 65)
    assert (found.counts[0], found.counts[16], found.counts[-1]) == (1, 2, 1)
    assert (found.minimum, found.maximum, found.sum, found.sum_of_squares) == (0.0, 4.0, 6.0, 18.0)


@pytest.mark.parametrize("values", [None, [], [float("nan")]])
def test_where_there_is_nothing_to_count_nothing_is_recorded(values):
    assert recorded(lambda state: state.record_histogram("a", values)) == {}


@pytest.mark.parametrize(
    ("pixels", "shape", "first"),
    [
        (np.full([2, 3], 7, np.uint8), (2, 3, 1), 7),
        (np.full([2, 3, 4], 1, np.uint8), (2, 3, 4), 1),  # dark, and no float
        (paddle.full([2, 3, 3], 0.2), (2, 3, 3), 51),
        (np.full([2, 3], 1.5), (2, 3, 1), 255),
        (np.full([2, 3], np.nan), (2, 3, 1), 0),
    ],
)
def test_a_picture_is_bytes(pixels, shape, first):
    found = recorded(lambda state: state.record_image("a", pixels))["a"]
    assert (found.pixels.shape, found.pixels.dtype, found.pixels.flat[0]) == (shape, np.uint8, first)


@pytest.mark.parametrize(
    "pixels",
    [np.zeros(3), np.zeros([3, 8, 8]), np.zeros([1, 2, 2, 3]), np.zeros([2, 2], int), np.zeros([0, 2]), "a.png"],
)
def test_what_is_no_picture_is_refused(pixels):
    with pytest.raises(OnionError, match=r"record_image: a picture is \[height, width\].*; got .* transpose it"):
        recorded(lambda state: state.record_image("a", pixels))


def test_values_are_read_at_once():
    values = np.zeros(4)

    def call(state):
        state.record_histogram("a", values)
        values[:] = 5

    assert recorded(call)["a"].maximum == 0


class Unread:
    """What must not be read."""

    def __getattr__(self, name):
        raise AssertionError(name)


def record_all(state, value):
    state.record_scalar("a", value)
    state.record_histogram("b", value)
    state.record_image("c", value)


def test_what_nobody_writes_down_is_not_even_read():
    record_all(State(), Unread())
    assert recorded(lambda state: record_all(state, Unread()), kinds=()) == {}


def test_each_reader_gets_the_latest_of_each_name_since_it_read():
    records = Records(ALL)
    records.scalar("a", 1)
    records.scalar("b", 2)
    count = records.count
    records.scalar("a", 3)
    assert (records.since(0, ALL), records.since(count, ALL)) == ({"b": 2.0, "a": 3.0}, {"a": 3.0})
    assert records.since(count, {Image}) == {}


class Recording(RunnerItem):
    """Records on the way in, on the way out, and at the end of the pass."""

    def on_pass(self, state):
        yield
        state.record_scalar("end", state.step)

    def on_batch(self, state):
        if state.batch_id == 1:
            state.record_scalar("in", state.batch_id)
        yield
        if state.batch_id == 2:
            state.record_scalar("out", state.batch_id)


def rows(path):
    return [
        {key: row[key] for key in row if key not in ("pass", "seconds")}
        for row in map(json.loads, path.read_text().splitlines())
    ]


def test_scalars_are_rows_of_the_log_at_the_step_of_their_batch(tmp_path):
    Runner(Logger(tmp_path / "log", 100), Recording(), Batches(4)).run(passes=1)
    expected = [{"step": 2, "in": 1.0}, {"step": 3, "out": 2.0}, {"step": 4, "end": 4.0}]
    assert rows(tmp_path / "log") == expected


def test_a_log_writes_no_histograms(tmp_path):
    state = Runner(
        Logger(tmp_path / "log", 1), Observer(on_batch_end=lambda state: record_all(state, 1.0)), Batches(0)
    ).run(passes=1)
    state.record_histogram("a", Unread())
    assert state.records.count == 0


def test_an_inner_run_hands_on_its_latest_values_with_the_name_of_its_tester(tmp_path):
    inner = Runner(Recording(), Batches(4))
    middle = Runner(Tester(inner, name="b"), Batches(1))
    Runner(Logger(tmp_path / "log", 100), Tester(middle, 2, "a"), Batches(3)).run(passes=1)
    assert rows(tmp_path / "log") == [{"step": 2, "a.b.in": 1.0, "a.b.out": 2.0, "a.b.end": 4.0}]
