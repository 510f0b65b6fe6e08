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
    Saver,
    Tester,
)
from onion.device import paddle as load_paddle
from onion.testing import toy_examples, toy_network

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
    """Train with the standard items; those whose work is to read are not due, except the log."""
    network = toy_network()
    optimizer = paddle.optimizer.AdamW(
        paddle.optimizer.lr.LinearWarmup(0.1, 5, 0.0, 0.1),
        parameters=network.parameters(),
        grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0),
    )
    test = Runner(DataProvider(toy_examples(4), 4, prefetch=0), Forward(network))
    Runner(
        reads.outermost,
        Progress(seconds=NEVER, file=io.StringIO(), lines=False),
        Saver(folder / "run", every=NEVER),
        Logger(folder / "metrics.jsonl", every=EVERY),
        EarlyStopping("tester.batches"),
        Tester(test, every=NEVER),
        Evaluator(Count()),
        Observer(on_batch_begin=lambda state: None, on_batch_end=lambda state: None),
        *extra,
        DataProvider(toy_examples(4 * STEPS), 4),
        ParameterUpdater(optimizer),
        GradientMachine(network),
        reads.innermost,
    ).run(passes=1)
    return reads.steps


def test_a_training_reads_tensors_at_logging_steps_only(tmp_path, reads):
    assert train(tmp_path, reads) == EXPECTED


READ = [float, int, bool, str, lambda loss: loss.item(), lambda loss: loss.numpy()]


@pytest.mark.parametrize(
    "read", [*(lambda state, read=read: read(state.loss) for read in READ), lambda state: state.outputs.numpy()]
)
def test_a_ring_that_reads_a_tensor_of_every_batch_would_be_seen(tmp_path, reads, read):
    assert train(tmp_path, reads, Observer(on_batch_end=read)) == set(range(1, STEPS + 1))
