"""Between two logging steps nothing in a whole onion reads a value from the device."""

import io

import pytest

from onion import (
    DataProvider,
    EarlyStopping,
    Evaluator,
    Forward,
    GradientMachine,
    Logger,
    Observer,
    ParameterUpdater,
    Progress,
    Runner,
    RunnerItem,
    Saver,
    Tester,
)
from onion.device import paddle as load_paddle
from onion.testing import Batches, toy_examples, toy_network

paddle = load_paddle()

NEVER = 10**9
STEPS, EVERY = 35, 10
EXPECTED = {1, 10, 20, 30}  # the first is Progress's, which shows a bar as soon as there is something to show

READINGS = ["__float__", "__int__", "__index__", "__bool__", "__array__", "__format__", "__str__", "__repr__"]
METHODS = ["item", "numpy", "tolist"]


class Reads:
    """The steps at which something was read; it hears where the run is from the outermost ring and the innermost."""

    def __init__(self):
        self.step, self.steps = None, set()
        self.outermost = Observer(on_batch_begin=lambda state: self.go_to(state.next_step))
        self.innermost = Observer(on_pass_end=lambda state: self.go_to(None))  # a pass may be summed up at its end

    def go_to(self, step):
        self.step = step

    def note(self):
        if self.step is not None:
            self.steps.add(self.step)


class Count:
    """A metric that reads nothing."""

    def reset(self):
        self.count = 0

    def update(self, outputs, batch):
        self.count += 1

    def result(self):
        return {"batches": self.count}


def around(folder, test):
    """Return the standard items; those whose work is to read are not due, but for the log."""
    return [
        Progress(seconds=NEVER, file=io.StringIO(), lines=False),
        Saver(folder / "run", every=NEVER),
        Logger(folder / "metrics.jsonl", every=EVERY),
        EarlyStopping("tester.batches"),
        Tester(test, every=NEVER),
        Evaluator(Count()),
        Observer(on_batch_begin=lambda state: None, on_batch_end=lambda state: None),
    ]


# -- a loss that counts ------------------------------------------------------------------------------------------------


def counting(note):
    """Return a stand-in for a loss that notes whatever is asked of it."""

    def reading(name):
        answers = {"__bool__": True, "__int__": 0, "__index__": 0, "__str__": "?", "__repr__": "?", "__format__": "?"}

        def read(self, *arguments, **more):
            note()
            return answers.get(name, 0.25)

        return read

    def no_other(self, name):  # shape, dtype, detach, ...: nobody has to know more of a loss than that it is one
        note()
        raise AttributeError(name)

    own = {name: reading(name) for name in [*READINGS, *METHODS, "__eq__", "__lt__", "__gt__", "__add__", "__mul__"]}
    return type("Cost", (), {**own, "__getattr__": no_other, "__hash__": object.__hash__})()


class Costing(RunnerItem):
    """Has a new cost for every batch."""

    def __init__(self, note):
        self.note = note

    def on_batch(self, state):
        state.loss = counting(self.note)


def costing(folder, *extra):
    reads = Reads()
    test = Runner(Batches(1))
    items = [*around(folder, test), *extra, Batches(STEPS), Costing(reads.note)]
    Runner(reads.outermost, *items, reads.innermost).run(passes=1)
    return reads.steps


def test_a_loss_is_read_at_logging_steps_only(tmp_path):
    assert costing(tmp_path) == EXPECTED


@pytest.mark.parametrize("read", [float, int, bool, str, lambda loss: loss.item(), lambda loss: loss.numpy()])
def test_a_ring_that_reads_the_loss_of_every_batch_would_be_seen(tmp_path, read):
    assert costing(tmp_path, Observer(on_batch_end=lambda state: read(state.loss))) == set(range(1, STEPS + 1))


# -- a training, all of whose tensors count ----------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch):
    """Note the reading of any tensor."""
    noted = Reads()

    def counted(read):
        def noting(*arguments, **more):
            noted.note()
            return read(*arguments, **more)

        return noting

    for name in [*READINGS, *METHODS]:
        monkeypatch.setattr(paddle.Tensor, name, counted(getattr(paddle.Tensor, name)))
    return noted


def train(folder, reads, *extra):
    network = toy_network()
    optimizer = paddle.optimizer.AdamW(
        paddle.optimizer.lr.LinearWarmup(0.1, 5, 0.0, 0.1),
        parameters=network.parameters(),
        grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0),
    )
    test = Runner(DataProvider(toy_examples(4), 4, prefetch=0), Forward(network))
    Runner(
        reads.outermost,
        *around(folder, test),
        *extra,
        DataProvider(toy_examples(4 * STEPS), 4),
        ParameterUpdater(optimizer),
        GradientMachine(network),
        reads.innermost,
    ).run(passes=1)
    return reads.steps


def test_a_training_reads_tensors_at_logging_steps_only(tmp_path, reads):
    assert train(tmp_path, reads) == EXPECTED


@pytest.mark.parametrize("what", ["loss", "outputs"])
def test_a_ring_that_reads_a_tensor_of_every_batch_would_be_seen(tmp_path, reads, what):
    seen = train(tmp_path, reads, Observer(on_batch_end=lambda state: getattr(state, what).numpy()))
    assert seen == set(range(1, STEPS + 1))
