import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.models.encoder import Encoder
from onion.tasks.classification import Classifier
from onion.tasks.optimization import fine_tuning_optimizer, is_decayed, linear_warmup_and_decay


def rates(rate, steps, warmup):
    schedule = linear_warmup_and_decay(rate, steps, warmup)
    found = []
    for _ in range(steps + 2):
        found.append(schedule())
        schedule.step()
    return found


@pytest.mark.parametrize(
    ("steps", "warmup", "wanted"),
    [
        (10, 0.2, [0, 0.5, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0, 0]),
        (4, 0.0, [1, 3 / 4, 2 / 4, 1 / 4, 0, 0]),
        (4, 1.0, [0, 1 / 4, 2 / 4, 3 / 4, 0, 0]),
        (1, 0.1, [1, 0, 0]),
    ],
)
def test_schedule_worked_out_by_hand(steps, warmup, wanted):
    assert rates(0.5, steps, warmup) == pytest.approx([0.5 * factor for factor in wanted])


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 200), st.floats(0, 1))
def test_schedule_rises_to_the_rate_and_falls_to_nothing_in_straight_lines(steps, warmup):
    found = rates(1.0, steps, warmup)
    top = int(np.argmax(found))
    assert all(0 <= rate <= 1 for rate in found)
    assert found[steps] == found[steps + 1] == 0
    if round(steps * warmup) < steps:
        assert found[top] == pytest.approx(1)
        assert np.diff(found[: top + 1]) == pytest.approx(1 / max(top, 1))
        assert np.diff(found[top : steps + 1]) == pytest.approx(-1 / (steps - top))


@pytest.fixture
def network(encoder_folder):
    paddle.seed(3)
    return Classifier(Encoder.from_pretrained(encoder_folder), 2)


def undecayed(network):
    return {path for path, _ in network.named_parameters() if not is_decayed(path)}


def test_biases_and_layer_norms_are_not_decayed(network):
    layers = [f"encoder.encoder.layers.{layer}" for layer in range(2)]
    parts = [f"self_attn.{each}_proj" for each in ("q", "k", "v", "out")] + ["linear1", "linear2", "norm1", "norm2"]
    biases = {f"{layer}.{part}.bias" for layer in layers for part in parts}
    biases |= {"encoder.embeddings.layer_norm.bias", "encoder.pooler.dense.bias", "classifier.bias"}
    norms = {f"{layer}.{norm}.weight" for layer in layers for norm in ("norm1", "norm2")}
    assert undecayed(network) == biases | norms | {"encoder.embeddings.layer_norm.weight"}


def test_a_step_without_gradients_shrinks_exactly_the_decayed_parameters(network):
    optimizer = fine_tuning_optimizer(network, rate=0.1, steps=10, warmup=0.0, weight_decay=0.5)
    before = {path: parameter.numpy().copy() for path, parameter in network.named_parameters()}
    sum((parameter * 0).sum() for parameter in network.parameters()).backward()
    optimizer.step()
    for path, parameter in network.named_parameters():
        factor = 1 if path in undecayed(network) else 1 - 0.1 * 0.5
        np.testing.assert_allclose(parameter.numpy(), before[path] * factor, rtol=1e-6, err_msg=path)


def test_gradients_are_clipped_by_their_global_norm(network):
    optimizer = fine_tuning_optimizer(network, rate=0.1, steps=10, warmup=0.0, weight_decay=0.0, clip=0.25)
    sum((parameter * 3).sum() for parameter in network.parameters()).backward()
    optimizer.step()
    # Adam's first moment after one step is (1 - beta1) times the clipped gradient.
    moments = [moment.numpy() / 0.1 for moment in optimizer._accumulators["moment1"].values()]
    assert np.sqrt(sum((moment.astype(np.float64) ** 2).sum() for moment in moments)) == pytest.approx(0.25, rel=1e-4)
