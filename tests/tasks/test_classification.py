import numpy as np
import paddle
import pytest

from onion.models.encoder import Encoder
from onion.tasks.classification import Classifier
from onion.tasks.texts import TextExamples, batch_of
from tests.tasks.helpers import HIDDEN, VOCAB


class Encodings:
    def __init__(self, ids):
        self.ids, self.types, self.truncated = ids, np.zeros(len(ids), np.int64), False


@pytest.fixture
def network(encoder_folder):
    paddle.seed(3)
    network = Classifier(Encoder.from_pretrained(encoder_folder), 3)
    network.eval()
    return network


@pytest.fixture
def examples():
    chance = np.random.default_rng(1)
    texts = [chance.integers(5, len(VOCAB), length) for length in (3, 9, 5, 24, 3, 12)]
    return TextExamples([Encodings(ids) for ids in texts], [0, 1, 2, 2, 1, 0])


def test_logits_do_not_depend_on_the_other_texts_of_the_batch(network, examples):
    with paddle.no_grad():
        together = network(batch_of(examples[:])).numpy()
        alone = [network(batch_of([example])).numpy()[0] for example in examples]
        backwards = network(batch_of(examples[::-1])).numpy()[::-1]
    assert together.shape == (6, 3)
    assert together.dtype == np.float32
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(together, backwards, atol=1e-5)
    assert np.ptp(together, axis=0).min() > 1e-3  # and they do depend on the text


def test_cost_is_the_mean_cross_entropy_and_its_gradient_is_softmax_minus_truth(network):
    values = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, -2.0]], np.float32)
    logits = paddle.to_tensor(values, stop_gradient=False)
    cost = network.cost(logits, {"labels": paddle.to_tensor([2, 1])})
    cost.backward()
    softmax = np.exp(values) / np.exp(values).sum(axis=1, keepdims=True)
    assert cost.shape == []
    assert float(cost) == pytest.approx(-(np.log(softmax[0, 2]) + np.log(softmax[1, 1])) / 2, rel=1e-5)
    np.testing.assert_allclose(logits.grad.numpy(), (softmax - np.eye(3)[[2, 1]]) / 2, atol=1e-6)


def test_the_gradient_of_a_weight_is_what_moving_it_does_to_the_cost(network, examples):
    batch = batch_of(examples[:])
    labels = {"labels": paddle.to_tensor(batch["labels"])}

    def cost():
        return network.cost(network(batch), labels)

    cost().backward()
    assert [path for path, parameter in network.named_parameters() if parameter.grad is None] == []
    for weight in (network.classifier.weight, network.encoder.pooler.dense.weight):
        gradient, start = weight.grad.numpy(), weight.numpy().copy()
        place = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        sides = []
        for move in (1e-2, -1e-2):
            moved = start.copy()
            moved[place] += move
            weight.set_value(moved)
            sides.append(float(cost()))
        weight.set_value(start)
        assert (sides[0] - sides[1]) / 2e-2 == pytest.approx(gradient[place], rel=2e-2)


def test_the_head_starts_small_and_drops_what_the_encoder_drops(network, encoder_folder):
    weight = network.classifier.weight.numpy()
    assert weight.shape == (HIDDEN, 3)
    assert 0.01 < weight.std() < 0.03  # initializer_range 0.02
    assert network.dropout.p == network.encoder.config.hidden_dropout_prob == 0.1
    assert Classifier(Encoder.from_pretrained(encoder_folder), 2, dropout=0.0).dropout.p == 0.0


def test_dropout_in_training_only(network, examples):
    batch = batch_of(examples[:])
    assert (network(batch).numpy() == network(batch).numpy()).all()
    network.train()
    assert (network(batch).numpy() != network(batch).numpy()).any()
