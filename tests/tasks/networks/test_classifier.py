import numpy as np
import paddle
import pytest

from onion.models.encoder import Encoder
from onion.tasks.batches import batch_of
from onion.tasks.data.features.examples import Examples
from onion.tasks.networks.classifier import Classifier
from tests.tasks.helpers import HIDDEN, VOCAB


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
    labels = [0, 1, 2, 2, 1, 0]
    made = [
        {"row": 0, "ids": ids, "types": np.zeros_like(ids), "label": label}
        for ids, label in zip(texts, labels, strict=True)
    ]
    return Examples.of(made)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 4.0]])
def test_cost_with_weights_and_smoothing_by_its_definition(encoder_folder, weights, smoothing):
    network = Classifier(Encoder.from_pretrained(encoder_folder), 3, weights=weights, smoothing=smoothing)
    values = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, -2.0], [0.1, 0.2, 0.3]])
    labels = np.array([2, 0, 1])
    targets = (1 - smoothing) * np.eye(3)[labels] + smoothing / 3
    each = -(targets * (values - np.log(np.exp(values).sum(axis=1, keepdims=True)))).sum(axis=1)
    found = network.loss(paddle.to_tensor(values, dtype="float32"), {"labels": paddle.to_tensor(labels)})
    counted = None if weights is None else np.array(weights)[labels]
    assert float(found) == pytest.approx(np.average(each, weights=counted), rel=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_a_batch_in_which_nothing_counts_costs_and_teaches_nothing(encoder_folder, smoothing):
    network = Classifier(Encoder.from_pretrained(encoder_folder), 2, weights=[0.0, 1.0], smoothing=smoothing)
    logits = paddle.to_tensor([[0.5, -1.0], [3.0, 0.0]], stop_gradient=False)
    loss = network.loss(logits, {"labels": paddle.to_tensor([0, 0])})
    loss.backward()
    assert float(loss) == 0
    assert logits.grad.tolist() == [[0, 0], [0, 0]]


def test_decoded_are_probabilities(network):
    (found,) = network.decode(paddle.to_tensor([[0.0, np.log(3.0), -1e4]]), {})
    np.testing.assert_allclose(found, [0.25, 0.75, 0.0], atol=1e-6)


def test_every_parameter_gets_a_gradient(network, examples):
    batch = batch_of(examples[:])
    network.loss(network(batch), {"labels": paddle.to_tensor(batch["labels"])}).backward()
    assert [path for path, parameter in network.named_parameters() if parameter.grad is None] == []


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
