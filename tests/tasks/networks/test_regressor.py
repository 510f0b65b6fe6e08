import numpy as np
import paddle
import pytest

from onion.models.encoder import Encoder
from onion.tasks.networks.regressor import Regressor
from tests.tasks.helpers import HIDDEN


def test_cost_is_the_mean_squared_error_and_its_gradient_twice_the_mean_difference(encoder_folder):
    network = Regressor(Encoder.from_pretrained(encoder_folder))
    outputs = paddle.to_tensor([[1.0], [2.0], [-3.0]], stop_gradient=False)
    loss = network.loss(outputs, {"labels": paddle.to_tensor([0.5, 2.0, -1.0])})
    loss.backward()
    assert loss.shape == []
    assert float(loss) == pytest.approx((0.25 + 0 + 4) / 3)
    np.testing.assert_allclose(outputs.grad.numpy(), np.array([[1.0], [0.0], [-4.0]]) / 3, rtol=1e-6)
    assert network.decode(outputs, {}) == [1.0, 2.0, -3.0]
    assert network.classifier.weight.shape == [HIDDEN, 1]
    assert network.classifier.bias.tolist() == [0.0]
