"""SplitOnMemoryError: the batch that does not fit is tried again in pieces, and nothing remains of the failed try."""

import gc
import weakref

import numpy as np
import paddle
import pytest

from onion import (
    Accumulate,
    CompositionError,
    DataError,
    Evaluator,
    Observer,
    ParameterUpdater,
    Runner,
    SplitOnMemoryError,
)
from onion.items.split_on_memory_error import is_memory_error
from onion.testing import Batches, PlannedError, toy_network
from tests.items.learning import Mse, Wrapped, examples, learning
from tests.rings import at
from tests.toys import bits


class Small(Wrapped):
    """A network with running means whose device holds so many examples and no more."""

    def __init__(self, fits, error=MemoryError):
        super().__init__()
        self.fits, self.error = fits, error
        self.register_buffer("seen", paddle.zeros([1]))
        self.sizes = []

    def forward(self, batch):
        self.seen.set_value(self.seen + batch["x"].shape[0])
        return super().forward(batch)

    def loss(self, outputs, batch):
        self.sizes.append(len(outputs))
        loss = super().loss(outputs, batch)
        if len(outputs) > self.fits:
            loss.backward(retain_graph=True)  # it fails in the middle of backward, with gradients already there
            raise self.error("no room")
        return loss


def onion(network, *rings, batch_size=8, count=24, data=None, optimizer="SGD", rate=0.1, shuffle=False, **arguments):
    mover, machine = learning(network, optimizer=optimizer, rate=rate)
    data = data or examples(count, batch_size, shuffle=shuffle)
    return Runner(*rings, data, mover, SplitOnMemoryError(network, **arguments), machine)


def check_close(network, other, within=1e-6):
    for one, another in zip(network.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(one.numpy(), another.numpy(), rtol=0, atol=within)


# -- in pieces ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fits", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("batch_size", [8, 5, 24])
def test_a_run_in_pieces_equals_one_with_room_enough(batch_size, fits):
    networks, losses = (Small(fits), Small(1000)), ([], [])
    for network, found in zip(networks, losses, strict=True):
        note = Observer(on_batch_end=lambda state, found=found: found.append(float(state.loss)))
        assert onion(network, note, batch_size=batch_size).run(passes=2).step == 2 * -(-24 // batch_size)
    check_close(*networks)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert [network.seen.item() for network in networks] == [48, 48]


def test_with_room_enough_nothing_changes_to_the_bit():
    network, other = toy_network(), toy_network()
    onion(network).run(passes=2)
    onion(other).without(SplitOnMemoryError).run(passes=2)
    assert bits(network) == bits(other)


def test_the_size_that_fits_is_remembered_and_told_once(caplog):
    network = Small(3)
    runner = onion(network)
    runner.run(passes=1)
    assert network.sizes == [8, 4, 2, 2, 2, 2, *[2, 2, 2, 2] * 2]
    assert runner[SplitOnMemoryError].log_values() == {"piece_size": 2}
    assert caplog.messages == [
        "split_on_memory_error: out of memory with 8 examples; batches are split into parts of 4 from now on",
        "split_on_memory_error: out of memory with 4 examples; batches are split into parts of 2 from now on",
    ]


def test_a_batch_that_fits_at_once_is_run_whole():
    network = Small(4)
    onion(network, count=11).run(passes=2)
    assert network.sizes == [8, 4, 4, 3, 4, 4, 3]


def test_a_piece_in_the_middle_that_does_not_fit_makes_the_whole_batch_be_tried_again():
    class Choosy(Small):
        def loss(self, outputs, batch):
            self.fits = 1 if (batch["y"] == 5).any() else 4
            return super().loss(outputs, batch)

    network, roomy = Choosy(4), Small(8)
    batch = {"x": np.ones((8, 8), "float32"), "y": np.arange(8, dtype="float32").reshape(8, 1)}
    for each in (network, roomy):
        onion(each, data=Batches([dict(batch)])).run(passes=1)
    assert network.sizes == [8, 4, 4, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]
    check_close(network, roomy)
    assert network.seen.item() == 8


def test_the_batch_and_its_outputs_are_whole_on_the_way_out():
    state = onion(Small(3), count=8).run(passes=1)
    assert state.batch["x"].shape == (8, 8)
    assert state.outputs.shape == [8, 1]
    assert state.outputs.stop_gradient
    assert (state.step, state.share) == (1, 1.0)


def test_the_memory_of_the_failed_try_is_free_before_the_next():
    class Held:
        pass

    class Hungry(Small):
        def loss(self, outputs, batch):
            held = Held()  # in this frame, as what a real one holds
            alive.append(sum(ref() is not None for ref in refs))
            refs.append(weakref.ref(held))
            return super().loss(outputs, batch)

    refs, alive = [], []
    gc.disable()
    try:
        onion(Hungry(2), count=8).run(passes=1)
    finally:
        gc.enable()
    assert alive[:3] == [0, 0, 0], "the frames of failed tries are gone, without a garbage collector"


# -- where it ends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("floor", "sizes"), [(1, [8, 4, 2, 1]), (2, [8, 4, 2]), (3, [8, 4, 3]), (8, [8]), (20, [8])])
def test_an_error_with_the_floor_left_is_raised_as_it_came(floor, sizes):
    network = Small(0)
    before = bits(network.body)
    with pytest.raises(MemoryError, match=r"^no room$"):
        onion(network, min_examples=floor).run(passes=1)
    assert network.sizes == sizes
    assert bits(network.body) == before


def test_other_errors_pass():
    with pytest.raises(PlannedError):
        onion(Small(2, error=PlannedError)).run(passes=1)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError("(ResourceExhausted) Fail to alloc memory"), True),
        (MemoryError(), True),
        (RuntimeError("ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 25MB"), True),
        (OSError("(External) CUBLAS error(3). [Hint: 'CUBLAS_STATUS_ALLOC_FAILED'...]"), True),
        (OSError("(External) CUDA error(2), out of memory."), True),
        (RuntimeError("(NotFound) no such kernel"), False),
        (OSError(2, "No such file"), False),
        (ValueError("out of memory"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_what_counts_as_running_out_of_memory(error, expected):
    assert is_memory_error(error) == expected


def test_what_paddle_itself_raises_counts():
    with pytest.raises(Exception, match="ResourceExhausted") as caught:
        paddle.zeros([10**7, 10**7])
    assert is_memory_error(caught.value)


# -- together with others ----------------------------------------------------------------------------------------------


def test_inside_accumulate_the_gradients_of_earlier_batches_survive_a_failed_try():
    networks = Small(1), Small(100)
    for network in networks:
        runner = onion(network, batch_size=4, count=20)
        runner.insert_after(ParameterUpdater, Accumulate(3)).run(passes=2)
    check_close(*networks)
    assert [network.seen.item() for network in networks] == [40, 40]


def test_a_ring_inside_that_counts_is_put_back_with_the_step():
    steps, errors = [], [MemoryError]

    def fail():
        if errors:
            raise errors.pop()

    rings = Observer(on_batch_begin=lambda state: steps.append(state.step)), at(1, fail)
    state = onion(Small(4), batch_size=4, count=4).insert_after(SplitOnMemoryError, *rings).run(passes=1)
    assert steps == [0, 0, 1], "the batch that had counted did so no more when it was tried again"
    assert state.step == 1


def test_a_loss_over_tokens_is_weighted_by_them():
    class Counted(Small):
        def loss(self, outputs, batch):
            super().loss(outputs, batch)
            return ((outputs - batch["y"]) ** 2 * batch["labelled"]).sum() / batch["labelled"].sum()

    random = np.random.default_rng(0)
    batch = {
        "x": random.normal(size=(4, 8)).astype("float32"),
        "y": random.normal(size=(4, 1)).astype("float32"),
        "labelled": np.array([[1], [1], [1], [0]], "float32"),
    }
    networks = Counted(2), Counted(4)
    for each in networks:
        onion(each, data=Batches([batch]), weight=lambda batch: batch["labelled"].sum()).run(passes=1)
    check_close(*networks)


def test_a_second_run_tries_whole_batches_again():
    network = Small(4)
    runner = onion(network)
    runner.run(passes=1)
    network.fits = 100
    network.sizes.clear()
    runner.run(passes=1)
    assert network.sizes == [8, 8, 8]


# -- batches that cannot be split --------------------------------------------------------------------------------------


def packed():
    """Three texts in flat arrays, and where each ends."""
    ids = np.arange(7, dtype="float32")
    return {"x": np.stack([ids] * 8, 1), "y": ids.reshape(7, 1), "ends": np.array([2, 5, 7])}


def unpack(batch, size):
    ends = batch["ends"]
    pieces = []
    for start in range(0, len(ends), size):
        chosen = ends[start : start + size]
        first = ends[start - 1] if start else 0
        part = slice(first, chosen[-1])
        pieces.append({"x": batch["x"][part], "y": batch["y"][part], "ends": chosen - first})
    return pieces


def of_packed(network, **arguments):
    return onion(network, data=Batches([packed()]), rate=0.001, **arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, r"\['x'\] has 7.*\['ends'\] has 3.* Give split_on_memory_error split="),
        ({"split": unpack}, "Give weight=, a function of the batch"),
    ],
    ids=["no function", "no weight"],
)
def test_flat_arrays_are_refused_at_the_first_batch_though_memory_has_not_run_out(arguments, said):
    with pytest.raises(DataError, match=said):
        of_packed(Small(100), **arguments).run(passes=1)


def test_a_function_of_ones_own_splits_flat_arrays():
    small, large = Small(4), Small(100)
    for network in (small, large):
        of_packed(network, split=unpack, weight=lambda batch: len(batch["y"])).run(passes=1)
    assert small.sizes == [7, 5, 2, 3, 2]
    check_close(small, large, 1e-5)


# -- where it may stand ------------------------------------------------------------------------------------------------


def test_its_place_is_between_updater_and_machine():
    network = toy_network()
    mover, machine = learning(network)
    splitter = SplitOnMemoryError(network)
    for items, said in [
        ([splitter, mover, machine], "is outside any ParameterUpdater"),
        ([mover, machine, splitter], "not outside gradient_machine"),
        (
            [mover, splitter, Evaluator(Mse()), machine],
            r"evaluator would see twice .* move it outside split_on_memory_error",
        ),
    ]:
        with pytest.raises(CompositionError, match=said):
            Runner(Batches(1), *items)
    assert "SplitOnMemoryError(ToyNetwork)" in str(Runner(Batches(1), mover, splitter, machine))


@pytest.mark.parametrize("floor", [0, -1, True, 1.5, "2"])
def test_a_floor_that_is_none_is_refused(floor):
    with pytest.raises(CompositionError, match="min_examples must be an integer >= 1"):
        SplitOnMemoryError(toy_network(), min_examples=floor)
