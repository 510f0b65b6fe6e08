"""SplitOnMemoryError: the batch that does not fit is tried again in pieces, and nothing remains of the failed try."""

import gc
import logging
import weakref

import numpy as np
import paddle
import pytest

from onion import (
    Accumulate,
    CompositionError,
    DataError,
    DataProvider,
    Evaluator,
    GradientMachine,
    Observer,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    SplitOnMemoryError,
)
from onion.items.split_on_memory_error import is_memory_error
from onion.testing import Batches, PlannedError, toy_examples, toy_network


class Small(paddle.nn.Layer):
    """A network with running means whose device holds so many examples and no more."""

    def __init__(self, fits, error=MemoryError, seed=0):
        super().__init__()
        self.body = toy_network(seed=seed)
        self.fits, self.error = fits, error
        self.register_buffer("seen", paddle.zeros([1]))
        self.sizes = []

    def forward(self, batch):
        self.seen.set_value(self.seen + batch["x"].shape[0])
        return self.body(batch)

    def loss(self, outputs, batch):
        self.sizes.append(len(outputs))
        loss = self.body.loss(outputs, batch)
        if len(outputs) > self.fits:
            loss.backward(retain_graph=True)  # it fails in the middle of backward, with gradients already there
            raise self.error("no room")
        return loss


def onion(network, *rings, batch_size=8, count=24, optimizer_of=None, shuffle=False, **arguments):
    optimizer = optimizer_of or (lambda parameters: paddle.optimizer.SGD(0.1, parameters=parameters))
    return Runner(
        *rings,
        DataProvider(toy_examples(count), batch_size, prefetch=0, shuffle=shuffle),
        ParameterUpdater(optimizer(network.parameters())),
        SplitOnMemoryError(network, **arguments),
        GradientMachine(network),
    )


def values(network):
    return [each.numpy() for each in network.parameters()]


def check_close(one, other, within=1e-6):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=within)


# -- in pieces ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fits", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("batch_size", [8, 5, 24])
def test_a_run_in_pieces_equals_one_with_room_enough(batch_size, fits):
    losses = {}
    networks = {"small": Small(fits), "large": Small(1000)}
    for name, network in networks.items():
        note = Observer(on_batch_end=lambda state, name=name: losses.setdefault(name, []).append(float(state.loss)))
        state = onion(network, note, batch_size=batch_size).run(passes=2)
        assert state.step == 2 * -(-24 // batch_size)
    check_close(values(networks["small"]), values(networks["large"]))
    assert losses["small"] == pytest.approx(losses["large"], rel=1e-5)
    assert networks["small"].seen.item() == networks["large"].seen.item() == 48


def test_with_room_enough_nothing_changes_to_the_bit():
    network = toy_network()
    onion(network).run(passes=2)
    other = toy_network()
    onion(other).without(SplitOnMemoryError).run(passes=2)
    assert [each.tobytes() for each in values(network)] == [each.tobytes() for each in values(other)]


def test_the_size_that_fits_is_remembered_and_told_once(caplog):
    caplog.set_level(logging.WARNING, "onion")
    network = Small(3)
    runner = onion(network)
    runner.run(passes=1)
    assert network.sizes == [8, 4, 2, 2, 2, 2, *[2, 2, 2, 2] * 2]
    assert runner[SplitOnMemoryError].log_values() == {"piece_size": 2}
    assert [record.getMessage() for record in caplog.records] == [
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

    def batch():
        y = np.arange(8, dtype="float32").reshape(8, 1)
        return {"x": np.ones((8, 8), "float32"), "y": y}

    network, roomy = Choosy(4), Small(8)
    for each in (network, roomy):
        updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=each.parameters()))
        Runner(Batches([batch()]), updater, SplitOnMemoryError(each), GradientMachine(each)).run(passes=1)
    assert network.sizes == [8, 4, 4, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]
    check_close(values(network), values(roomy))
    assert network.seen.item() == 8


def test_the_batch_and_its_outputs_are_whole_on_the_way_out():
    network = Small(3)
    state = onion(network, count=8).run(passes=1)
    assert state.batch["x"].shape == (8, 8)
    assert state.outputs.shape == [8, 1]
    assert state.outputs.stop_gradient
    assert (state.step, state.share) == (1, 1.0)


def test_an_evaluator_outside_sees_each_example_once():
    class Count:
        def reset(self):
            self.examples = 0

        def update(self, outputs, batch):
            assert len(outputs) == len(batch["y"])
            self.examples += len(outputs)

        def result(self):
            return {"examples": self.examples}

    network = Small(3)
    assert onion(network, Evaluator(Count())).run(passes=1).metrics == {"examples": 24}


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
    before = [each.tobytes() for each in values(network)]
    with pytest.raises(MemoryError, match=r"^no room$"):
        onion(network, min_examples=floor).run(passes=1)
    assert network.sizes == sizes
    assert [each.tobytes() for each in values(network)] == before


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


def test_older_errors_lead_to_pieces_too():
    class OldError(RuntimeError):
        def __init__(self, said):
            super().__init__(f"ResourceExhaustedError: {said}")

    network = Small(4, error=OldError)
    assert onion(network).run(passes=1).step == 3
    assert network.sizes == [8, *[4, 4] * 3]


# -- together with others ----------------------------------------------------------------------------------------------


def test_inside_accumulate_the_gradients_of_earlier_batches_survive_a_failed_try():
    def trained(fits):
        network = Small(fits)
        Runner(
            DataProvider(toy_examples(20), 4, prefetch=0),
            ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters())),
            Accumulate(3),
            SplitOnMemoryError(network),
            GradientMachine(network),
        ).run(passes=2)
        return values(network), network.seen.item()

    check_close(trained(1)[0], trained(100)[0])
    assert trained(1)[1] == trained(100)[1] == 40


def test_a_ring_inside_that_counts_is_put_back_with_the_step():
    steps = []
    network = Small(4)
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
    note = Observer(on_batch_begin=lambda state: steps.append(state.step))

    class FailsOnTheWayOut(RunnerItem):
        def __init__(self):
            self.failed = False

        def on_batch(self, state):
            yield
            if not self.failed:
                self.failed = True
                raise MemoryError

    state = Runner(
        DataProvider(toy_examples(4), 4), updater, SplitOnMemoryError(network), note, FailsOnTheWayOut(),
        GradientMachine(network),
    ).run(passes=1)  # fmt: skip
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
        updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=each.parameters()))
        splitter = SplitOnMemoryError(each, weight=lambda batch: batch["labelled"].sum())
        Runner(Batches([batch]), updater, splitter, GradientMachine(each)).run(passes=1)
    check_close(values(networks[0]), values(networks[1]))


# -- going on ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_resumed_run_knows_the_size_and_ends_with_the_same_bits(cut, tmp_path):
    def adam(parameters):
        return paddle.optimizer.Adam(0.05, parameters=parameters)

    def begun(folder, seed=0):
        network = Small(3, seed=seed)
        return network, onion(network, Saver(tmp_path / folder, every=2), optimizer_of=adam, shuffle=True)

    def outcome(network, runner):
        bits = {name: value.numpy().tobytes() for name, value in network.state_dict().items()}
        return bits, runner[SplitOnMemoryError].state_dict()

    network, uncut = begun("uncut")
    uncut.run(passes=2)
    begun("cut")[1].run(passes=2, steps=cut)
    again, resumed = begun("cut", seed=1)
    resumed.run(passes=2)
    assert outcome(again, resumed) == outcome(network, uncut)
    assert max(again.sizes) <= 2, "no try too large"


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
    updater = ParameterUpdater(paddle.optimizer.SGD(0.001, parameters=network.parameters()))
    return Runner(Batches([packed()]), updater, SplitOnMemoryError(network, **arguments), GradientMachine(network))


def test_flat_arrays_are_refused_at_the_first_batch_though_memory_has_not_run_out():
    with pytest.raises(DataError, match=r"\['x'\] has 7.*\['ends'\] has 3.* Give split_on_memory_error split="):
        of_packed(Small(100)).run(passes=1)


def test_flat_arrays_with_a_function_need_a_weight_too():
    with pytest.raises(DataError, match="Give weight=, a function of the batch"):
        of_packed(Small(100), split=unpack).run(passes=1)


def test_a_function_of_ones_own_splits_flat_arrays():
    small, large = Small(4), Small(100)
    for network in (small, large):
        of_packed(network, split=unpack, weight=lambda batch: len(batch["y"])).run(passes=1)
    assert small.sizes == [7, 5, 2, 3, 2]
    check_close(values(small), values(large), 1e-5)


# -- where it may stand ------------------------------------------------------------------------------------------------


def test_it_stands_between_updater_and_machine():
    network = toy_network()
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
    splitter, machine = SplitOnMemoryError(network), GradientMachine(network)
    with pytest.raises(CompositionError, match="is outside any ParameterUpdater"):
        Runner(Batches(1), splitter, updater, machine)
    with pytest.raises(CompositionError, match="not outside gradient_machine"):
        Runner(Batches(1), updater, machine, splitter)
    with pytest.raises(CompositionError, match=r"evaluator would see twice .* move it outside split_on_memory_error"):
        Runner(Batches(1), updater, splitter, Evaluator(None), machine)
    assert "SplitOnMemoryError(ToyNetwork)" in str(Runner(Batches(1), updater, splitter, machine))


@pytest.mark.parametrize("floor", [0, -1, True, 1.5, "2"])
def test_a_floor_that_is_none_is_refused(floor):
    with pytest.raises(CompositionError, match="min_examples must be an integer >= 1"):
        SplitOnMemoryError(toy_network(), min_examples=floor)
