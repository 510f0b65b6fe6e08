"""What both loops are given: lines of ERNIE's data, ERNIE's own masks, the shape, the recipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from onion.models.config import EncoderConfig
from onion.tasks.pretraining.examples import Example
from onion.tasks.pretraining.masking.ernie import Vocabulary, masked


@dataclass(frozen=True)
class Recipe:
    """A short training as ERNIE 1.0's: its optimizer's constants are in the loops themselves, once each.

    ``decay_steps`` is the length of the training that the rate is planned for, of which ``steps`` are made, so that
    the rate is still far from 0 at the end.
    """

    steps: int = 30
    batch_size: int = 16
    learning_rate: float = 1e-3
    warmup_steps: int = 10
    decay_steps: int = 60
    weight_decay: float = 0.01
    clip: float = 1.0
    mask_seed: int = 0


def small_config(vocab_size: int) -> EncoderConfig:
    """Return two layers of 64 without dropout; activation and epsilon are those of ERNIE 1.0's static graph."""
    return EncoderConfig(
        model_type="ernie",
        vocab_size=vocab_size,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=513,
        hidden_act="relu",
        layer_norm_eps=1e-5,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


def vocabulary(size: int) -> Vocabulary:
    """Return ERNIE 1.0's vocabulary, which may have fewer words."""
    return Vocabulary(size, cls_id=1, sep_id=2, mask_id=3)


def masked_batches(examples: Sequence[Example], recipe: Recipe, vocab_size: int) -> Iterator[list[Example]]:
    """Yield the batches of a training, in the order of the file, masked by words as ERNIE masks."""
    generator = np.random.RandomState(recipe.mask_seed)
    for begin in range(0, len(examples), recipe.batch_size):
        yield masked(examples[begin : begin + recipe.batch_size], True, vocabulary(vocab_size), generator)


def first(examples: Sequence[Example], recipe: Recipe) -> Sequence[Example]:
    """Return the examples that a training takes.

    Raises:
        ValueError: there are too few.
    """
    needed = recipe.steps * recipe.batch_size
    if len(examples) < needed:
        raise ValueError(f"{recipe.steps} batches of {recipe.batch_size} need {needed} lines, not {len(examples)}")
    return examples[:needed]
