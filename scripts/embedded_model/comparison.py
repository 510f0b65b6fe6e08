"""What weights of 16 bits change: the encoder's outputs, and the loss of masked words of held-out text."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import attrs
import numpy as np

from onion import DataProvider, Evaluator, Forward, Runner
from onion.models.auto import load_encoder
from onion.models.pretraining_heads import EncoderForPretraining
from onion.tasks.collector import Decoder
from onion.tasks.pretraining.corpus.opening import open_corpus
from onion.tasks.pretraining.examples import collate
from onion.tasks.pretraining.masking.masking import MaskedExamples, Masking
from onion.tasks.pretraining.metric import PretrainingMetric
from onion.tasks.pretraining.networks import PretrainingNetwork
from onion.tasks.pretraining.tasks.knowledge_masking import KnowledgeMasking

SEED, TOKENS, MAX_LENGTH = 1, 4096, 128
COMPARED = 64
"""Segments of which all outputs are compared."""


@attrs.frozen
class Difference:
    """How far apart two encoders are.

    Attributes:
        outputs: the largest difference of two values of ``sequence_output``, which LayerNorm has brought to about 1.
        losses: of masked words, in nats: the one's, the other's.
    """

    outputs: float
    losses: tuple[float, float]

    @property
    def loss(self) -> float:
        """How far the losses are apart."""
        return abs(self.losses[0] - self.losses[1])


def compare(one: Path, other: Path, held_out: Path) -> Difference:
    """Compare two encoders with their masked LM heads on a corpus; both see the same masks, of whole words.

    Raises:
        OnionError: a folder is no encoder, or no corpus.
    """
    corpus = open_corpus(held_out)
    task = KnowledgeMasking(max_length=min(MAX_LENGTH, load_encoder(one).config.max_length))
    samples = task.samples(corpus, SEED)
    masked = MaskedExamples(samples, Masking(), corpus.tokenizer, SEED)
    rows = samples.of_pass(0)
    batch = collate([rows[number] for number in range(min(COMPARED, len(rows)))], corpus.tokenizer.pad_id)
    vectors = [_vectors(folder, batch["input_ids"]) for folder in (one, other)]
    losses = [word_loss(folder, masked, corpus.tokenizer.pad_id) for folder in (one, other)]
    return Difference(float(np.abs(vectors[0] - vectors[1]).max()), (losses[0], losses[1]))


def word_loss(folder: Path, examples: MaskedExamples, pad_id: int) -> float:
    """Return the mean loss of the masked words, in nats."""
    known = EncoderForPretraining.from_pretrained(folder)
    network = PretrainingNetwork(known.encoder, known.cls.predictions)
    data = DataProvider(
        examples.of_pass(0),
        tokens_per_batch=TOKENS,
        lengths=examples.lengths,
        collate=partial(collate, pad_id=pad_id),
    )
    test = Runner(data, Evaluator(PretrainingMetric()), Decoder(network), Forward(network))
    return float(test.run(passes=1).metrics["word_loss"])


def _vectors(folder: Path, ids: np.ndarray) -> np.ndarray:
    encoder = load_encoder(folder)
    encoder.eval()
    vectors: np.ndarray = encoder(ids).packed.numpy()
    return vectors
