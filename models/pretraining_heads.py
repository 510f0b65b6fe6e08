"""The pretraining heads of BERT and ERNIE: masked LM and next-sentence prediction.

    network = EncoderForPretraining(encoder)
    scores = network(input_ids, token_type_ids, masked_positions=positions)
    scores.words, scores.next_sentence

``EncoderForPretraining.from_pretrained(folder)`` loads the heads of a folder. Parameter names are PaddleNLP's
(``ErnieForPretraining``, ``BertForPretraining``), including the encoder's.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import numpy as np
import paddle
from paddle import nn

from onion.errors import DataError, WeightsError
from onion.models import hub
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.inputs import check_integers, on_host
from onion.models.layers import ACTIVATIONS, Linear
from onion.models.ops import LayerNorm, as_tensor, rows
from onion.models.packing import Ids
from onion.models.pretrained_encoder import Encoded, arrays_of
from onion.models.weights import Weights, read_weights, write_weights

log = logging.getLogger(__name__)

Positions: TypeAlias = Ids


@attrs.frozen(eq=False, repr=False)
class PretrainingScores:
    """The output of the heads: scores before the softmax.

    Attributes:
        words: [masked words, vocabulary], in the order of the given positions; without positions [tokens, vocabulary],
            row by row without padding.
        next_sentence: [batch, 2]; None without that head.
        encoded: the output of the encoder.
    """

    words: paddle.Tensor
    next_sentence: paddle.Tensor | None
    encoded: Encoded


class WordPrediction(nn.Layer):
    """The masked LM head: linear layer, activation, LayerNorm, and the product with the word embeddings.

    The decoder is tied: its weight is the encoder's word embeddings, which are passed to ``forward`` and are not a
    parameter of this layer, so that they are trained, counted and saved once.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.transform = Linear(config.hidden_size, config.hidden_size, config)
        self.layer_norm = LayerNorm(config.hidden_size, epsilon=config.layer_norm_eps)
        self.decoder_bias = self.create_parameter([config.vocab_size], is_bias=True)
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, hidden: paddle.Tensor, word_embeddings: paddle.Tensor) -> paddle.Tensor:
        """[n, hidden] and the word embeddings [vocabulary, hidden] -> [n, vocabulary]."""
        transformed = self.layer_norm(self.activation(self.transform(hidden)))
        return paddle.matmul(transformed, word_embeddings, transpose_y=True) + self.decoder_bias


class PretrainingHeads(nn.Layer):
    """Masked LM and, optionally, next-sentence prediction (RoBERTa has none).

    Args:
        config: the encoder's.
        next_sentence: whether to have that head.
    """

    def __init__(self, config: EncoderConfig, next_sentence: bool = True) -> None:
        super().__init__()
        self.predictions = WordPrediction(config)
        self.seq_relationship = Linear(config.hidden_size, 2, config) if next_sentence else None

    def forward(
        self, encoded: Encoded, word_embeddings: paddle.Tensor, masked_positions: Positions | None = None
    ) -> PretrainingScores:
        """Score an encoded batch.

        Args:
            encoded: the encoder's output.
            word_embeddings: the encoder's word embeddings, [vocabulary, hidden].
            masked_positions: integers [masked words], positions in the flattened [batch * length], as in PaddleNLP and
                ERNIE; only these are computed. Default: every token.

        Raises:
            DataError: there are no masked words, or one of them is padding or outside the batch.
        """
        hidden = encoded.packed
        if masked_positions is not None:
            hidden = rows(hidden, _index(masked_positions, encoded))
        words = self.predictions(hidden, word_embeddings)
        next_sentence = None if self.seq_relationship is None else self.seq_relationship(encoded.pooled_output)
        return PretrainingScores(words, next_sentence, encoded)

    def fill(self, weights: Weights) -> None:
        """Load the heads from a folder's weights; missing heads keep their values, with a warning.

        Raises:
            WeightsError: a head does not fit or is incomplete, or the decoder is not tied to the word embeddings.
        """
        heads = {f"cls.{name}": parameter for name, parameter in self.named_parameters()}
        fresh = weights.check_heads({name: tuple(parameter.shape) for name, parameter in heads.items()})
        decoder = weights.heads.get("cls.predictions.decoder_weight")
        if decoder is not None and not np.array_equal(decoder, weights.arrays["embeddings.word_embeddings.weight"]):
            raise WeightsError(
                f"{weights.path}: the masked LM decoder has its own weights; only a decoder that is tied to the word "
                f"embeddings is supported"
            )
        for name, parameter in heads.items():
            if name not in fresh:
                parameter.set_value(np.ascontiguousarray(weights.heads[name]))
        if fresh:
            log.warning("%s lacks %s; they keep their initial values", weights.path, ", ".join(fresh))
        if weights.unknown_heads:
            log.warning("%s: unknown heads, ignored: %s", weights.path, ", ".join(weights.unknown_heads))


class EncoderForPretraining(nn.Layer):
    """An encoder with its pretraining heads.

    The encoder's parameters have the prefix of its model type (``ernie.embeddings...``), the heads' ``cls.``.

    Args:
        encoder: is shared, not copied.
        next_sentence: whether to have that head.
    """

    def __init__(self, encoder: Encoder, next_sentence: bool = True) -> None:
        super().__init__()
        self.add_sublayer(encoder.config.model_type, encoder)
        self.cls = PretrainingHeads(encoder.config, next_sentence)

    @property
    def encoder(self) -> Encoder:
        """The encoder."""
        return next(layer for layer in self.children() if isinstance(layer, Encoder))

    def forward(
        self,
        input_ids: Ids,
        token_type_ids: Ids | None = None,
        position_ids: Ids | None = None,
        attention_mask: Ids | None = None,
        task_type_ids: Ids | int | None = None,
        masked_positions: Positions | None = None,
    ) -> PretrainingScores:
        """Encode a padded batch and score it; see :class:`Encoder` and :class:`PretrainingHeads` for the arguments."""
        encoder = self.encoder
        encoded = encoder(input_ids, token_type_ids, position_ids, attention_mask, task_type_ids)
        scores: PretrainingScores = self.cls(encoded, encoder.embeddings.word_embeddings.weight, masked_positions)
        return scores

    @classmethod
    def from_pretrained(cls, name_or_folder: str | Path, **settings: Any) -> EncoderForPretraining:
        """Load an encoder with the pretraining heads of its folder.

        A missing masked LM head gets new weights, with a warning; without a next-sentence head the network has none.

        Args:
            name_or_folder: as for :meth:`Encoder.from_pretrained`.
            **settings: config values that override those of the file.

        Raises:
            WeightsError: something is missing, damaged, or does not fit; an incomplete head is an error.
        """
        folder = hub.resolve(name_or_folder)
        weights = read_weights(folder)
        encoder = Encoder.of(EncoderConfig.read(folder), weights, **settings)
        network = cls(encoder, next_sentence=any(name.startswith("cls.seq_relationship.") for name in weights.heads))
        network.cls.fill(weights)
        return network

    def save_pretrained(self, folder: str | Path, layout: str = "onion") -> None:
        """Write the encoder and its heads; see :meth:`Encoder.save_pretrained`.

        Raises:
            WeightsError: they cannot be written, or the layout is unknown.
        """
        heads = {f"cls.{name}": array for name, array in arrays_of(self.cls).items()}
        config = self.encoder.config
        write_weights(folder, arrays_of(self.encoder) | heads, layout, f"{config.model_type}.", config)
        config.write(folder)


def _index(positions: Positions, encoded: Encoded) -> paddle.Tensor:
    """Convert positions in the padded batch to indices into the packed tokens: int64 [masked words]."""
    check_integers("masked_positions", positions)
    places = on_host("masked_positions", positions)
    if places.ndim != 1 or not len(places):
        raise DataError(f"masked_positions must have the shape [masked words], at least one, got {list(places.shape)}")
    return as_tensor(encoded.packing.find(places))
