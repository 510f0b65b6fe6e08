"""The network of a pretraining task."""

import numpy as np
import paddle
import pytest

from onion import DataProvider, Evaluator, Forward, GradientMachine, NanGuard, ParameterUpdater, Runner
from onion.models.auto import new_encoder
from onion.models.config import EncoderConfig
from onion.models.pretraining_heads import WordPrediction
from onion.tasks.collector import Decoder
from onion.tasks.pretraining.examples import collate
from onion.tasks.pretraining.metric import PretrainingMetric
from onion.tasks.pretraining.networks import PretrainingNetwork

CONFIG = EncoderConfig(
    vocab_size=16,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=8,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


def example(masked, label):
    places = np.array(masked, np.int64)
    zeros = {"types": np.zeros(5, np.int64), "flags": np.zeros(5, np.uint8)}
    return {"ids": np.arange(2, 7), **zeros, "masked": places, "originals": places, "levels": places, "label": label}


def trained(classes, masked, passes=1):
    """Train on two examples with these masks; return the runner's state and the network."""
    paddle.seed(0)
    network = PretrainingNetwork(new_encoder(CONFIG), WordPrediction(CONFIG), classes)
    data = DataProvider([example(masked, 0), example(masked, 1)], 2, collate=collate)
    optimizer = paddle.optimizer.AdamW(0.1, parameters=network.parameters(), weight_decay=0.0)
    state = Runner(data, ParameterUpdater(optimizer), NanGuard(check_every=1), GradientMachine(network)).run(
        passes=passes
    )
    return state, network


def test_a_batch_with_nothing_to_learn_changes_nothing():
    state, network = trained(0, [])
    assert float(state.loss) == 0.0
    _, untouched = trained(0, [], passes=0)
    for one, other in zip(network.parameters(), untouched.parameters(), strict=True):
        assert np.array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("masked", [[], [1]])
def test_the_loss_is_the_sum_of_what_there_is_to_learn(masked):
    state, network = trained(2, masked)
    _, before = trained(2, masked, passes=0)
    assert float(state.loss) > 0.5
    assert not np.array_equal(network.classifier.weight.numpy(), before.classifier.weight.numpy())
    moved = not np.array_equal(network.words.decoder_bias.numpy(), before.words.decoder_bias.numpy())
    assert moved == bool(masked)


def test_a_batch_with_nothing_masked_is_tested_too():
    _, network = trained(2, [])
    metric = PretrainingMetric(("a", "b"))
    data = DataProvider([example([], 0), example([], 1)], 2, collate=collate)
    Runner(data, Evaluator(metric), Decoder(network), Forward(network)).run(passes=1)
    assert metric.result()["accuracy"] == 0.5
