"""The independent side: a padded encoder of ``paddle.nn``, the loss, and ERNIE's optimizer in numpy.

Written from PaddlePaddle/ERNIE at tag static_graph (ernie_v1.py, optimization.py) and Paddle's Adam; nothing of onion's
computation is used.

In Adam's denominator, Paddle 1.x adds epsilon to the root of the second moment as it is (fluid/operators/optimizers/
adam_op.h); since Paddle 2 it is added to the root that is corrected for the first steps, as in Kingma and Ba 2014.
onion has today's, so that is compared; the other one is told beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from onion.models.config import EncoderConfig
from onion.tasks.pretraining.examples import Example
from scripts.pretraining_parity.material import Recipe

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
"""Defaults of fluid's Adam."""

FAR = -1e9


class PlainErnie(nn.Layer):
    """ERNIE 1.0 with its two heads; every row is computed to the length of the longest."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width, epsilon = config.hidden_size, config.layer_norm_eps
        self.words = nn.Embedding(config.vocab_size, width)
        self.positions = nn.Embedding(config.max_position_embeddings, width)
        self.sentences = nn.Embedding(config.type_vocab_size, width)
        self.norm = nn.LayerNorm(width, epsilon=epsilon)
        layer = nn.TransformerEncoderLayer(
            width, config.num_attention_heads, config.intermediate_size, dropout=0.0, activation=config.hidden_act
        )
        self.layers = nn.TransformerEncoder(layer, config.num_hidden_layers)
        for each in self.layers.layers:
            each.norm1._epsilon = each.norm2._epsilon = epsilon
        self.pooled = nn.Linear(width, width)
        self.next = nn.Linear(width, 2)
        self.transform = nn.Linear(width, width)
        self.transform_norm = nn.LayerNorm(width, epsilon=epsilon)
        self.word_bias = self.create_parameter([config.vocab_size], is_bias=True)
        self.activation = getattr(functional, config.hidden_act)

    def cost(self, batch: Sequence[Example]) -> paddle.Tensor:
        """Return the mean cross-entropy of the masked words plus that of next-sentence prediction."""
        length = max(len(row["ids"]) for row in batch)
        is_padding = np.stack([np.arange(length) >= len(row["ids"]) for row in batch])
        vectors = (
            self.words(_padded(batch, "ids", length))
            + self.positions(paddle.arange(length))
            + self.sentences(_padded(batch, "types", length))
        )
        bias = paddle.to_tensor(is_padding[:, None, None].astype(np.float32) * FAR)
        vectors = self.layers(self.norm(vectors), bias)
        places = np.concatenate([number * length + row["masked"] for number, row in enumerate(batch)])
        at = paddle.gather(vectors.reshape([-1, vectors.shape[-1]]), paddle.to_tensor(places))
        transformed = self.transform_norm(self.activation(self.transform(at)))
        words = transformed @ self.words.weight.T + self.word_bias
        following = self.next(paddle.tanh(self.pooled(vectors[:, 0])))
        originals = paddle.to_tensor(np.concatenate([row["originals"] for row in batch]))
        labels = paddle.to_tensor([row["label"] for row in batch])
        return functional.cross_entropy(words, originals) + functional.cross_entropy(following, labels)


def _padded(batch: Sequence[Example], name: str, length: int) -> paddle.Tensor:
    return paddle.to_tensor(np.stack([np.pad(row[name], (0, length - len(row[name]))) for row in batch]))


NAMES = {
    "words.weight": "encoder.embeddings.word_embeddings.weight",
    "positions.weight": "encoder.embeddings.position_embeddings.weight",
    "sentences.weight": "encoder.embeddings.token_type_embeddings.weight",
    "norm": "encoder.embeddings.layer_norm",
    "layers.layers": "encoder.encoder.layers",
    "pooled": "encoder.pooler.dense",
    "next": "classifier",
    "transform": "words.transform",
    "transform_norm": "words.layer_norm",
    "word_bias": "words.decoder_bias",
}
"""Names here, or what they begin with -> those of onion's PretrainingNetwork."""


def take_weights(network: PlainErnie, arrays: Mapping[str, np.ndarray]) -> None:
    """Give it the weights of a PretrainingNetwork, by the names that they have there; all of them are used."""
    found = {}
    for name, parameter in network.named_parameters():
        begin = next(each for each in NAMES if name == each or name.startswith(f"{each}."))
        theirs = NAMES[begin] + name[len(begin) :]
        parameter.set_value(arrays[theirs])
        found[theirs] = name
    if found.keys() != arrays.keys():
        raise ValueError(f"not the weights of this network: {sorted(found.keys() ^ arrays.keys())}")


def rate(step: int, recipe: Recipe) -> float:
    """Return fluid's ``linear_warmup_decay``, whose decay counts from the first step; the first step is 0."""
    if step < recipe.warmup_steps:
        return recipe.learning_rate * step / recipe.warmup_steps
    return recipe.learning_rate * (1 - step / recipe.decay_steps)


def is_decayed(name: str) -> bool:
    return "norm" not in name and not name.endswith("bias")


Epsilon = Callable[[float], float]
"""Of the second moment's correction, ``sqrt(1 - beta2 ** step)``: what is added to that moment's root, uncorrected."""


def of_paddle(correction: float) -> float:
    return EPSILON * correction


def of_fluid(correction: float) -> float:
    return EPSILON


def costs(
    network: PlainErnie, batches: Iterable[Sequence[Example]], recipe: Recipe, epsilon: Epsilon = of_paddle
) -> list[float]:
    """Train, and return the cost of each step."""
    parameters = dict(network.named_parameters())
    first = {name: np.zeros(each.shape, np.float32) for name, each in parameters.items()}
    second = {name: np.zeros(each.shape, np.float32) for name, each in parameters.items()}
    found = []
    for number, batch in enumerate(batches):
        cost = network.cost(batch)
        cost.backward()
        found.append(float(cost))
        gradients = {name: each.grad.numpy() for name, each in parameters.items()}
        norm = math.sqrt(sum(float((each.astype(np.float64) ** 2).sum()) for each in gradients.values()))
        scale = np.float32(recipe.clip / max(norm, recipe.clip))
        now, correction = rate(number, recipe), math.sqrt(1 - BETA2 ** (number + 1))
        adams = np.float32(now * correction / (1 - BETA1 ** (number + 1)))
        for name, parameter in parameters.items():
            gradient, before = gradients[name] * scale, parameter.numpy()
            first[name] += np.float32(1 - BETA1) * (gradient - first[name])
            second[name] += np.float32(1 - BETA2) * (gradient * gradient - second[name])
            after = before - adams * first[name] / (np.sqrt(second[name]) + np.float32(epsilon(correction)))
            if is_decayed(name):
                after -= before * np.float32(recipe.weight_decay * now)
            parameter.set_value(after)
            parameter.clear_gradient()
    return found
