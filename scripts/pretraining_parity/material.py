"""What both loops are given: batches of ERNIE's lines with ERNIE's own masks, initial weights, the recipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from onion.models.config import EncoderConfig
from onion.tasks.pretraining.corpus.ernie_examples import example_of
from onion.tasks.pretraining.corpus.ernie_lines import ErnieSample
from onion.tasks.pretraining.examples import collate
from onion.tasks.pretraining.masking.ernie import Vocabulary, masked

CLS_ID, SEP_ID, MASK_ID = 1, 2, 3


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


@dataclass(frozen=True, eq=False)
class MaskedBatch:
    """A masked batch: padded ids ``[batch, longest]``, the places of the targets in them, the ids that stood there."""

    ids: np.ndarray
    positions: np.ndarray
    labels: np.ndarray


Step = tuple[Sequence[ErnieSample], MaskedBatch]


def batches(samples: Sequence[ErnieSample], recipe: Recipe, vocab_size: int) -> Iterator[Step]:
    """Yield the batches of a training, in the order of the file, masked by words as ERNIE masks.

    Raises:
        ValueError: there are too few samples.
    """
    needed = recipe.steps * recipe.batch_size
    if len(samples) < needed:
        raise ValueError(f"{recipe.steps} batches of {recipe.batch_size} need {needed} lines, not {len(samples)}")
    generator, vocabulary = np.random.RandomState(recipe.mask_seed), Vocabulary(vocab_size, CLS_ID, SEP_ID, MASK_ID)
    for begin in range(0, needed, recipe.batch_size):
        batch = samples[begin : begin + recipe.batch_size]
        made = collate(masked([example_of(each) for each in batch], True, vocabulary, generator))
        places = np.array(made["masked_positions"], np.int64)
        yield batch, MaskedBatch(made["input_ids"], places, made["word_labels"])
