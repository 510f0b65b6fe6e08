import numpy as np
import paddle
import pytest

from onion.models.encoder import Encoder
from onion.tasks.networks.matchers import PairwiseMatcher, PointwiseMatcher
from tests.tasks.helpers import HIDDEN


def test_the_pointwise_score_is_the_probability_of_the_second_label(encoder_folder):
    network = PointwiseMatcher(Encoder.from_pretrained(encoder_folder), 2)
    found = network.decode(paddle.to_tensor([[0.0, np.log(3.0)], [20.0, 0.0], [0.0, 25.0], [0.0, 30.0]]), {})
    assert found[:3] == pytest.approx([0.75, 1 / (1 + np.exp(20)), 1 / (1 + np.exp(-25))])
    assert found[2] < found[3] < 1.0  # float32 could not tell them apart


@pytest.mark.parametrize("margin", [0.5, 0.2])
def test_the_pairwise_loss_by_its_definition(encoder_folder, margin):
    network = PairwiseMatcher(Encoder.from_pretrained(encoder_folder), margin)
    values = np.array([4.0, 0.0, -1.0, -4.0, 0.5, 1.0])  # three better texts, three worse ones
    logits = paddle.to_tensor(values[:, None], dtype="float32", stop_gradient=False)
    loss = network.loss(logits, {})
    loss.backward()
    scores = 1 / (1 + np.exp(-values))
    each = np.maximum(0, margin - scores[:3] + scores[3:])
    assert each[0] == 0
    assert loss.shape == []
    assert float(loss) == pytest.approx(each.mean(), rel=1e-5)
    slope = scores * (1 - scores) * np.array([0, -1, -1, 0, 1, 1]) / 3
    np.testing.assert_allclose(logits.grad.numpy()[:, 0], slope, atol=1e-6)
    assert network.classifier.weight.shape == [HIDDEN, 1]


def test_pairwise_scores_of_pairs_and_of_single_rows(encoder_folder):
    network = PairwiseMatcher(Encoder.from_pretrained(encoder_folder))
    logits = paddle.to_tensor([[0.0], [np.log(3.0)], [-np.log(3.0)], [20.0]])
    one, other = network.decode(logits, {"places": [0, 1]})
    assert one.tolist() == pytest.approx([0.5, 0.25], abs=1e-6)
    assert other.tolist() == pytest.approx([0.75, 1.0], abs=1e-6)
    assert network.decode(logits, {"places": [0, 1, 2, 3]}) == pytest.approx([0.5, 0.75, 0.25, 1.0], abs=1e-6)
