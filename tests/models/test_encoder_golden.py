"""Small random encoders against transformers (BERT, RoBERTa) and PaddleNLP (ERNIE): scripts/make_golden_encoders.py."""

import json
from pathlib import Path

import attrs
import numpy as np
import paddle
import pytest

from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.pretraining import EncoderForPretraining

GOLDEN = Path(__file__).parent / "golden"
NAMES = ["bert", "roberta", "ernie_1", "ernie_3"]
OUTPUTS = ("sequence_output", "pooled_output", "words", "next_sentence")


@pytest.fixture(scope="module", params=NAMES)
def golden(request):
    return dict(np.load(GOLDEN / f"encoder_{request.param}.npz"))


def part(golden, name):
    return {key.removeprefix(f"{name}:"): array for key, array in golden.items() if key.startswith(f"{name}:")}


def network_of(golden, **settings):
    """The encoder, with heads where the reference had them, and its parameters by the names in the file."""
    config = attrs.evolve(EncoderConfig.from_dict(json.loads(str(golden["config"]))), **settings)
    network = Encoder(config)
    if "words" in golden:
        network = EncoderForPretraining(network)
    parameters = {name.removeprefix(f"{config.model_type}."): p for name, p in network.named_parameters()}
    weights = part(golden, "weight")
    assert parameters.keys() == weights.keys()
    for name, array in weights.items():
        assert parameters[name].shape == list(array.shape), name
        parameters[name].set_value(array)
    network.eval()
    return network, parameters


def outputs_of(network, golden):
    batch = [golden["input_ids"], golden["token_type_ids"], None, golden["attention_mask"], golden.get("task_type_ids")]
    if "words" not in golden:
        return dict(zip(OUTPUTS, network(*batch), strict=False))
    scores = network(*batch, masked_positions=golden["masked_positions"])
    return dict(zip(OUTPUTS, (*scores.encoded, scores.words, scores.next_sentence), strict=True))


def test_outputs_and_all_gradients_agree(golden):
    network, parameters = network_of(golden)
    outputs = outputs_of(network, golden)
    for name, found in outputs.items():
        expected = golden[name]
        if name == "sequence_output":
            expected = expected * golden["attention_mask"][:, :, None]  # ours is zero where there is padding
        np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-5, err_msg=name)

    factors = part(golden, "factor")
    assert factors.keys() == outputs.keys()
    sum((out * paddle.to_tensor(factors[name])).sum() for name, out in outputs.items()).backward()
    for name, expected in part(golden, "gradient").items():
        scale = max(abs(expected).max(), 1)
        found = parameters[name].grad.numpy()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * scale, err_msg=name)


def test_the_epsilon_of_the_norms_matters(golden):
    """Otherwise the files above would not show that each has the right one."""
    eps = 1e-12 if "roberta" in str(golden["config"]) else 1e-5
    network, _ = network_of(golden, layer_norm_eps=eps)
    found = outputs_of(network, golden)["pooled_output"].numpy()
    assert abs(found - golden["pooled_output"]).max() > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_what_they_should_be(name):
    golden = np.load(GOLDEN / f"encoder_{name}.npz")
    config = EncoderConfig.from_dict(json.loads(str(golden["config"])))
    assert (config.model_type, config.hidden_act, config.position_offset, config.tasks, config.layer_norm_eps) == {
        "bert": ("bert", "gelu", 0, 0, 1e-12),
        "roberta": ("roberta", "gelu", 2, 0, 1e-5),
        "ernie_1": ("ernie", "relu", 0, 0, 1e-12),
        "ernie_3": ("ernie", "gelu", 0, 3, 1e-12),
    }[name]
    assert ("task_type_ids" in golden) == (name == "ernie_3")
    if name == "ernie_3":
        assert set(golden["task_type_ids"].flat) == {0, 1, 2}
