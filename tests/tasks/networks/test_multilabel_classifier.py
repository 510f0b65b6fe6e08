import numpy as np
import paddle
import pytest

from onion.models.encoder import Encoder
from onion.tasks.networks.multilabel_classifier import MultiLabelClassifier
from tests.tasks.helpers import HIDDEN


def test_cost_is_the_mean_binary_cross_entropy(encoder_folder):
    network = MultiLabelClassifier(Encoder.from_pretrained(encoder_folder), 3)
    values = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, -40.0]])
    labels = np.array([[1, 0, 1], [0, 1, 1]], np.float32)
    logits = paddle.to_tensor(values, dtype="float32", stop_gradient=False)
    loss = network.loss(logits, {"labels": paddle.to_tensor(labels)})
    loss.backward()
    each = np.logaddexp(0, values) - labels * values  # -log of what the truth was given
    assert loss.shape == []
    assert float(loss) == pytest.approx(each.mean(), rel=1e-5)
    np.testing.assert_allclose(logits.grad.numpy(), (1 / (1 + np.exp(-values)) - labels) / 6, atol=1e-6)
    assert network.classifier.weight.shape == [HIDDEN, 3]


def test_decoded_are_probabilities_of_their_own(encoder_folder):
    network = MultiLabelClassifier(Encoder.from_pretrained(encoder_folder), 3)
    (found,) = network.decode(paddle.to_tensor([[0.0, np.log(3.0), -1e4]]), {})
    np.testing.assert_allclose(found, [0.5, 0.75, 0.0], atol=1e-6)
