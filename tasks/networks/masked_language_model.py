"""The network of ``masked-lm``."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from onion.errors import DataError
from onion.models.config import EncoderConfig
from onion.models.pretrained_encoder import PretrainedEncoder
from onion.models.pretraining_heads import PretrainingHeads
from onion.tasks.batches import arguments
from onion.tasks.masked_lm.guessing import of_examples
from onion.tasks.metrics.perplexity import Guesses


class MaskedLanguageModel(nn.Layer):
    """An encoder with BERT's masked LM head, whose decoder is tied to the word embeddings.

    The head's parameters have the same names as in pretrained models (``cls.predictions...``).

    Args:
        encoder: computes the token vectors, and has the embeddings.
        guesses: the number of words per mask that :meth:`decode` returns.

    Raises:
        DataError: the encoder was pretrained in another way and has no such head.
    """

    def __init__(self, encoder: PretrainedEncoder, guesses: int = 5) -> None:
        super().__init__()
        if not (encoder.masked_lm and isinstance(encoder.config, EncoderConfig)):
            kind = encoder.config.model_type
            raise DataError(f"masked-lm: {kind} encoders have no masked LM head; use a BERT encoder")
        self.encoder = encoder
        self.cls = PretrainingHeads(encoder.config, next_sentence=False)
        self._guesses = min(guesses, encoder.config.vocab_size)

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the scores of all words, float32 ``[masked words, vocabulary]``, at ``batch["masked_positions"]``."""
        table = self.encoder.embeddings.word_embeddings.weight
        places = np.array(batch["masked_positions"], np.int64)
        if not len(places):  # a batch of texts without [MASK]
            return paddle.zeros([0, table.shape[0]])
        return self.cls(self.encoder(**arguments(batch)), table, places).words

    def loss(self, scores: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean cross-entropy of the masked words, a scalar."""
        return functional.cross_entropy(scores, batch["labels"])

    def loss_weight(self, batch: dict[str, Any]) -> int:
        """Return the number of masked words, over which the loss is a mean."""
        return len(batch["labels"])

    def decode(self, scores: paddle.Tensor, batch: dict[str, Any]) -> list[Guesses]:
        """Return the guesses of each example, with the loss of the true words if the batch has ``labels``."""
        probabilities, ids = self._guessed(functional.softmax(scores))
        columns = [ids.numpy(), probabilities.numpy()]
        if "labels" in batch:
            # Not log_softmax, which takes 60 ms per row of 30000 words on the CPU with Paddle 3.3.
            labels = paddle.to_tensor(batch["labels"])
            columns.append(functional.cross_entropy(scores, labels, reduction="none").numpy().reshape(-1))
        return of_examples(columns, batch)

    def _guessed(self, probabilities: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        """Return the largest values of each row and their indices: [rows, guesses] each."""
        if not len(probabilities):  # Paddle 2.6 does not support topk of nothing
            return probabilities[:, : self._guesses], paddle.zeros([0, self._guesses], "int64")
        values, places = paddle.topk(probabilities, self._guesses)
        return values, places
