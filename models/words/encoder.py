"""Three small encoders of words: a bag (BOW), a convolution (CNN), an LSTM. Each makes one vector of a text.

BOW and CNN are the students of ERNIE's distillation (PaddlePaddle/ERNIE, ``distill/`` of the static-graph version and
``demo/distill/`` of the dynamic one); of its LSTM neither code nor settings were published: this one is a choice of
this project. What becomes of a pair is one too: [u, v, |u - v|, u * v] (InferSent, Conneau et al. 2017) and the dense
layer.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import paddle
import paddle.nn.functional as F  # noqa: N812  the name everybody knows it by
from paddle import nn

from onion.errors import DataError
from onion.models.layers import Linear
from onion.models.packing import Ids, Packing
from onion.models.pretrained_config import PretrainedConfig
from onion.models.pretrained_encoder import Encoded, PretrainedEncoder
from onion.models.words.config import FILTER, WordsConfig
from onion.models.words.sides import Words, words_of


class WordEncoder(PretrainedEncoder):
    """What the encoders of words have in common: embeddings, the comparison of pairs, and the dense layer if any.

    Args:
        config: sizes. New embeddings are drawn from a truncated normal distribution (``initializer_range``).
    """

    config: WordsConfig
    config_class: ClassVar[type[PretrainedConfig]] = WordsConfig
    layers_path: ClassVar[str] = "layers"  # there are none
    lora_targets: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: WordsConfig) -> None:
        super().__init__(config)
        drawn = nn.initializer.TruncatedNormal(std=config.initializer_range)
        weights = paddle.ParamAttr(initializer=drawn)
        size = config.vocab_size, config.embedding_size
        self.embeddings = nn.Embedding(*size, padding_idx=config.pad_token_id, weight_attr=weights)
        self.dense = Linear(config.dense_input, config.hidden_size, config) if config.dense_input else None

    def forward(
        self,
        input_ids: Ids,
        token_type_ids: Ids | None = None,
        position_ids: Ids | None = None,
        attention_mask: Ids | None = None,
        task_type_ids: Ids | int | None = None,
        cls_only: bool = False,
    ) -> Encoded:
        """Encode a padded batch; see ``PretrainedEncoder.forward``. Positions and tasks are not read.

        Raises:
            DataError: vectors of tokens are asked for (``cls_only`` is false), which these encoders do not have.
        """
        if not cls_only:
            raise DataError(
                f"{self.config.model_type} makes one vector of a text and none of its tokens; choose another encoder"
            )
        there = input_ids != self.config.pad_token_id if attention_mask is None else attention_mask
        packing = Packing.of(there if not hasattr(there, "numpy") else there.numpy(), 1)
        words = words_of(input_ids, token_type_ids, packing.mask, 1 + self.config.pairs, self.config.pad_token_id)
        return Encoded(self._compared(self.vectors(self.embeddings(words.ids), words)), packing, _same, cls_only=True)

    @abstractmethod
    def vectors(self, embedded: paddle.Tensor, words: Words) -> paddle.Tensor:
        """Return a vector of each text, float32 [texts, vector size].

        Args:
            embedded: float32 [texts, longest, embedding], zero for padding.
            words: which places are words.
        """

    def _compared(self, vectors: paddle.Tensor) -> paddle.Tensor:
        """[batch * sides, vector size] -> [batch, hidden]."""
        if self.config.pairs:
            one, other = vectors.reshape([-1, 2, self.config.vector_size]).unbind(1)
            vectors = paddle.concat([one, other, (one - other).abs(), one * other], axis=1)
        return vectors if self.dense is None else paddle.tanh(self.dense(vectors))


class BagOfWords(WordEncoder):
    """The sum of the embeddings, softsign, and a dense layer with tanh."""

    def vectors(self, embedded: paddle.Tensor, words: Words) -> paddle.Tensor:
        """See :meth:`WordEncoder.vectors`."""
        return F.softsign(embedded.sum(axis=1))


class Convolution(WordEncoder):
    """A convolution over three words with ReLU, the maximum over time, and softsign."""

    def __init__(self, config: WordsConfig) -> None:
        super().__init__(config)
        drawn = paddle.ParamAttr(initializer=nn.initializer.Normal(std=config.initializer_range))
        sizes = config.embedding_size, config.hidden_size, FILTER
        self.convolution = nn.Conv1D(*sizes, padding=FILTER // 2, weight_attr=drawn)

    def vectors(self, embedded: paddle.Tensor, words: Words) -> paddle.Tensor:
        """See :meth:`WordEncoder.vectors`. Outside the text there are zeros, as many as a filter reaches."""
        filtered = F.relu(self.convolution(embedded.transpose([0, 2, 1]))).transpose([0, 2, 1]) * words.mask
        # After ReLU nothing is below zero, so the zeros of padding do not change the maximum. Paddle's own maximum
        # takes a hundred times as long on the CPU, forward and backward.
        largest = filtered.argmax(axis=1, keepdim=True)
        return F.softsign(paddle.take_along_axis(filtered, largest, 1).squeeze(1))


class BidirectionalLSTM(WordEncoder):
    """The last states of an LSTM in both directions, and a dense layer with tanh."""

    def __init__(self, config: WordsConfig) -> None:
        super().__init__(config)
        self.lstm = nn.LSTM(config.embedding_size, config.hidden_size, direction="bidirect")

    def vectors(self, embedded: paddle.Tensor, words: Words) -> paddle.Tensor:
        """See :meth:`WordEncoder.vectors`."""
        lengths = paddle.to_tensor(words.lengths.clip(min=1))
        _, (last, _) = self.lstm(embedded, sequence_length=lengths)  # [directions, texts, hidden]
        return paddle.concat([last[0], last[1]], axis=1)


def _same(vectors: paddle.Tensor) -> paddle.Tensor:
    return vectors
