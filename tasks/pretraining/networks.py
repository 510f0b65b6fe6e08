"""The network of a pretraining task: an encoder, the masked LM head, and a linear layer for the task's classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from onion.errors import CompositionError
from onion.models.ops import as_tensor, rows
from onion.models.pretrained_encoder import Encoded, PretrainedEncoder
from onion.models.pretraining_heads import WordPrediction
from onion.tasks.batches import arguments
from onion.tasks.networks.heads import fresh_linear


class Logits(NamedTuple):
    """The outputs of a network.

    Attributes:
        words: float32 ``[masked, vocabulary]``; None without masks, also where the batch has nothing to mask.
        classes: float32 ``[labels, classes]``, a row a text or a labelled token; None without classes.
    """

    words: paddle.Tensor | None
    classes: paddle.Tensor | None


@attrs.frozen(eq=False)
class Judged:
    """Predictions beside the truth.

    Attributes:
        losses: float32 ``[n]``, the negative log-probability of the true class.
        predicted: int64 ``[n]``, the most probable class.
        labels: int64 ``[n]``, the true one.
    """

    losses: np.ndarray
    predicted: np.ndarray
    labels: np.ndarray


@attrs.frozen(eq=False)
class Decoded:
    """What a metric needs of a batch.

    Attributes:
        words: of the masked words; none without masks.
        levels: int64 ``[masked]``, the kind of unit that each belongs to.
        classes: of the texts or tokens; none without classes.
    """

    words: Judged
    levels: np.ndarray
    classes: Judged


class PretrainingNetwork(nn.Layer):
    """An encoder with the heads of one task; a batch is that of ``onion.tasks.pretraining.examples.collate``.

    The loss is the mean cross-entropy of the masked words plus that of the classes (BERT, Devlin et al. 2018, appendix
    A.2; ERNIE 1.0 adds them up likewise).

    Args:
        encoder: is shared, not copied.
        words: the masked LM head, which several tasks may share; None: the task has no masks.
        classes: how many; 0: the task has only masks.
        each_token: whether tokens have classes, and not texts. Default False.
    """

    def __init__(
        self, encoder: PretrainedEncoder, words: WordPrediction | None, classes: int = 0, each_token: bool = False
    ) -> None:
        super().__init__()
        if words is None and not classes:
            raise CompositionError("a pretraining network has neither masked words nor classes to predict")
        self.encoder, self.each_token = encoder, each_token
        self.words = words
        self.classifier = fresh_linear(encoder, classes) if classes else None

    def forward(self, batch: dict[str, Any]) -> Logits:
        """Encode a batch and score its masked words and classes."""
        encoded = self.encoder(**arguments(batch))
        classes = words = None
        if self.classifier is not None and self.each_token:
            classes = self.classifier(_found(encoded, batch["labelled_positions"]))
        elif self.classifier is not None:
            classes = self.classifier(encoded.pooled_output)
        if self.words is not None and batch["masked_positions"]:
            table = self.encoder.embeddings.word_embeddings.weight
            words = self.words(_found(encoded, batch["masked_positions"]), table)
        return Logits(words, classes)

    def loss(self, logits: Logits, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean cross-entropy of the masked words plus that of the classes, a scalar.

        Of a batch that has nothing to learn, such as one of unknown words only, it is 0.
        """
        both = ((logits.words, batch.get("word_labels")), (logits.classes, batch.get("labels")))
        losses = [functional.cross_entropy(scores, labels) for scores, labels in both if scores is not None]
        if losses:
            return sum(losses[1:], start=losses[0])
        assert self.words is not None
        return self.words.decoder_bias.sum() * 0.0

    def loss_weight(self, batch: dict[str, Any]) -> int | None:
        """Return what the loss is a mean over, of one kind of target; None: of two, so the examples are counted."""
        if self.classifier is None:
            return len(batch["word_labels"])
        return len(batch["labels"]) if self.words is None else None

    def decode(self, logits: Logits, batch: dict[str, Any]) -> Decoded:
        """Return losses and hits of words and classes."""
        words = _judged(logits.words, batch.get("word_labels"))
        levels = np.asarray(batch["word_levels"] if logits.words is not None else [], np.int64)
        return Decoded(words, levels, _judged(logits.classes, batch.get("labels")))


def _found(encoded: Encoded, positions: Sequence[int]) -> paddle.Tensor:
    """Return the vectors at positions of the padded batch: float32 ``[positions, hidden]``."""
    return rows(encoded.packed, as_tensor(encoded.packing.find(np.asarray(positions, np.int64))))


def _judged(logits: paddle.Tensor | None, labels: Any) -> Judged:
    if logits is None:
        nothing = np.zeros(0, np.int64)
        return Judged(nothing.astype(np.float32), nothing, nothing)
    losses = functional.cross_entropy(logits, paddle.to_tensor(np.asarray(labels)), reduction="none")
    return Judged(losses.numpy().reshape(-1), logits.argmax(axis=-1).numpy(), np.asarray(labels))
