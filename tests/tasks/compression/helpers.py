"""Small classifiers and their batches."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import paddle

from onion.device import to_tensors
from onion.tasks.networks.classifier import Classifier
from tests.models.helpers import SMALL, small_encoder

DROPPING = attrs.evolve(SMALL, num_attention_heads=4, num_hidden_layers=4)
CONFIG = attrs.evolve(DROPPING, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
LENGTHS = [7, 3, 5]


def classifier(config: Any = CONFIG, seed: int = 1) -> Classifier:
    """A classifier of three labels."""
    network = Classifier(small_encoder(seed, config), 3)
    network.eval()
    return network


def batches(count: int = 4) -> list[dict[str, Any]]:
    """Batches of random tokens and labels, always the same."""
    generator = np.random.default_rng(0)
    ids = generator.integers(1, SMALL.vocab_size, (count, len(LENGTHS), max(LENGTHS)))
    labels = generator.integers(0, 3, (count, len(LENGTHS)))
    made = [
        {"input_ids": each, "token_type_ids": 0 * each, "lengths": LENGTHS, "labels": own}
        for each, own in zip(ids, labels, strict=True)
    ]
    return [to_tensors(each) for each in made]


def outputs(network: Classifier) -> np.ndarray:
    """The logits of a batch."""
    network.eval()
    with paddle.no_grad():
        logits: np.ndarray = network(batches()[0]).numpy()
    return logits
