"""Pieces of a batch come to the gradient of the whole, whatever the loss of a task is a mean over."""

from functools import partial

import numpy as np
import pytest

from onion import DataProvider, GradientMachine, ParameterUpdater, Runner, RunnerItem, SkipIf, SplitOnMemoryError
from onion.distributed import DataParallel, ProcessGroup
from onion.distributed.gradients import Learned
from onion.errors import DataError
from onion.tasks.finetune.fine_tune import Job
from onion.tasks.finetune.settings import Settings
from onion.tasks.networks.multi_head import MultiHead
from onion.tasks.question_answering.positions import UNKNOWN
from onion.tasks.registry import TASKS
from tests.onions import material
from tests.tasks.helpers import tiny_encoder

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

MORE = {
    "classification, weighted": {"class_weights": {"good": 5, "bad": 0.5}},
    "classification, weighted and smoothed": {"class_weights": {"good": 5, "bad": 0.5}, "label_smoothing": 0.1},
    "token-classification, jointly": {"decoder": "crf"},
}
"""Settings of a task that change its loss."""


class Kept(RunnerItem):
    """Keep the gradients that an updater gets, and the loss."""

    def __init__(self, network):
        self.network = network

    def on_batch(self, state):
        yield
        self.gradients = {
            path: each.grad.numpy().copy() for path, each in self.network.named_parameters() if each.grad is not None
        }
        self.loss = float(state.loss)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    return tiny_encoder(folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def prepared(name, encoder):
    """The network of a task, and examples with an uneven number of what its loss is a mean over."""
    task = name.partition(",")[0]
    train, dev = map(str, material.files(task))
    options = {**material.OPTIONS.get(task, {"max_length": 16}), **MORE.get(name, {})}
    job = Job.prepare(Settings(task=task, train=train, dev=dev, encoder=str(encoder), options=options))
    examples = [dict(each) for each in job.train_set][:10]
    if task == "question-answering":
        for each in examples[:2]:
            each["start"] = each["end"] = UNKNOWN
    return job, examples


def collated(job, examples):
    """Make a batch; masks depend on the words alone."""
    batch = job.task.collate(examples, 0)
    if "words" in batch and isinstance(batch["words"], np.ndarray):
        chosen = (batch.pop("words") >= 0) & (batch["input_ids"] % 2 == 0)
        batch |= {"masked_positions": np.flatnonzero(chosen).tolist(), "labels": batch["input_ids"][chosen]}
    return batch


def kept(network, source, *inside, pieces=1, exact=False, weight=None, loss=None, **settings):
    """Run one batch; return what an updater gets."""
    made = Kept(network)
    Runner(
        ProcessGroup(pieces),
        DataProvider(source, len(source), **settings),
        ParameterUpdater(paddle.optimizer.SGD(0.0, parameters=network.parameters())),
        made,
        DataParallel(exact),
        *inside,
        GradientMachine(network, loss, weight),
    ).run(steps=1)
    return made


def assert_close(found, wanted):
    assert found.loss == pytest.approx(wanted.loss, rel=1e-5)
    assert found.gradients.keys() == wanted.gradients.keys()
    for path, gradient in wanted.gradients.items():
        rounding = 1e-5 * np.abs(gradient).max() + 1e-7
        np.testing.assert_allclose(found.gradients[path], gradient, rtol=1e-3, atol=rounding, err_msg=path)


@pytest.mark.parametrize("name", [*TASKS, *MORE])
def test_pieces_of_every_task_come_to_the_gradient_of_the_whole_batch(name, encoder):
    job, examples = prepared(name, encoder)
    whole, plain, exact = (
        kept(job.network, examples, pieces=pieces, exact=exact, collate=partial(collated, job))
        for pieces, exact in ((1, False), (4, False), (4, True))
    )
    assert_close(plain, whole)
    assert_close(exact, whole)


# -- what a loss of one's own is a mean over --------------------------------------------------------------------------

EXAMPLES = [{"x": np.full(4, 0.3 * place, "float32"), "y": place / 5, "known": int(place > 2)} for place in range(8)]
"""The first piece of four knows nothing, the second one of its two examples."""


class Knowing(paddle.nn.Layer):
    """``[n, 4] -> [n]``; learns from the examples that are known."""

    def __init__(self):
        super().__init__()
        paddle.seed(1)
        self.linear = paddle.nn.Linear(4, 1)

    def forward(self, batch):
        return self.linear(batch["x"]).squeeze(1)

    def loss(self, outputs, batch):
        known = batch["known"].astype("float32")
        return ((outputs - batch["y"].astype("float32")) ** 2 * known).sum() / known.sum()  # 0 / 0 where none is

    def loss_weight(self, batch):
        return batch["known"].sum()


@pytest.mark.parametrize("exact", [False, True])
def test_a_network_or_its_machine_says_what_a_loss_is_a_mean_over(exact):
    whole = kept(Knowing(), EXAMPLES)
    network = Knowing()
    assert_close(kept(network, EXAMPLES, pieces=4, exact=exact), whole)
    given = {"loss": network.loss, "weight": lambda batch: batch["known"].sum()}
    assert_close(kept(network, EXAMPLES, pieces=4, exact=exact, **given), whole)
    unknown = kept(network, EXAMPLES, pieces=4, exact=exact, loss=network.loss)
    assert np.isnan(unknown.loss), "pieces that know nothing count as their examples"


def test_parts_of_a_piece_have_its_weight_together():
    network = Knowing()
    split = SplitOnMemoryError(network, weight=network.loss_weight)
    split.load_state_dict({"fits": 1})
    assert_close(kept(network, EXAMPLES, split, pieces=2), kept(Knowing(), EXAMPLES))


def test_a_piece_that_is_skipped_weighs_nothing():
    skip = SkipIf(lambda state: state.batch["x"][0, 0] == 0)
    assert_close(kept(Knowing(), EXAMPLES, skip, pieces=2), kept(Knowing(), EXAMPLES[4:]))


def test_a_batch_that_weighs_nothing_leaves_zeros():
    network = Knowing()
    found = kept(network, EXAMPLES[:3], pieces=2)
    assert found.loss == 0
    assert not any(gradient.any() for gradient in found.gradients.values())
    assert len(found.gradients) == 2


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf")])
def test_weights_that_make_no_sense(weight):
    with pytest.raises(DataError, match=f"the weight {weight:g} in the mean of the loss; it must be >= 0"):
        kept(Knowing(), EXAMPLES, pieces=2, weight=lambda batch: weight)


def test_heads_say_it_for_their_task():
    encoder = paddle.nn.Linear(4, 4)
    one, other = Knowing(), paddle.nn.Linear(4, 1)
    one.encoder = other.encoder = encoder
    other.loss = lambda outputs, batch: outputs.mean()
    network = MultiHead(encoder, {"one": one, "other": other})
    batch = {"known": np.array([1, 0, 1])}
    assert network.loss_weight({**batch, "task": "one"}) == 2
    assert network.loss_weight({**batch, "task": "other"}) is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_of_16_bits_are_added_up_in_32(dtype):
    network = paddle.nn.Layer()
    network.weight = network.create_parameter([2], dtype=dtype)
    learned = Learned.of([network])
    (network.weight.astype("float32") * paddle.to_tensor([40000.0, 2.0])).sum().backward()
    (taken,) = learned.take(2)
    assert taken.tolist() == pytest.approx([80000, 4], rel=0.01)
    learned.leave([taken / 2], [True])
    assert str(network.weight.grad.dtype) == f"paddle.{dtype}"
    assert network.weight.grad.astype("float32").tolist() == pytest.approx([40000, 2], rel=0.01)
