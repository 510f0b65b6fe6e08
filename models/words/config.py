"""The config of the encoders of words. Without Paddle."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from onion.errors import WeightsError
from onion.models.pretrained_config import PretrainedConfig, Shape, linear_shapes, number, one_of, truth, whole
from onion.models.words.names import BOW, CNN, KINDS, LSTM

FILTER = 3
"""Words that a filter of the convolution spans."""

GATES = 4
"""Parts of an LSTM's matrices: input, forget, cell, output."""

COMPARED = 4
"""Parts of what a pair of vectors becomes: u, v, |u - v|, u * v."""

NO_LIMIT = 1 << 31
"""Words: there are no positions, so only the memory limits the length of a text."""

_positive = whole(1)


@attrs.frozen(kw_only=True)
class WordsConfig(PretrainedConfig):
    """Sizes of an encoder of words.

    Attributes:
        embedding_size: width of the embeddings.
        hidden_size: width of the output; also the number of filters, or of units of the LSTM in each direction.
        pairs: whether it reads pairs of texts, each of which becomes a vector before they are compared.

    Raises:
        WeightsError: a value is out of range, or the padding is outside the vocabulary.
    """

    meaning_fields: ClassVar[tuple[str, ...]] = ("model_type", "pairs", "pad_token_id")

    model_type: str = attrs.field(validator=one_of(*KINDS))
    vocab_size: int = attrs.field(validator=_positive)
    embedding_size: int = attrs.field(default=128, validator=_positive)
    hidden_size: int = attrs.field(default=128, validator=_positive)
    pairs: bool = attrs.field(default=False, validator=truth)
    num_hidden_layers: int = attrs.field(default=1, validator=_positive)
    num_attention_heads: int = attrs.field(default=1, validator=_positive)
    hidden_dropout_prob: float = attrs.field(default=0.0, validator=number(0, 1))
    initializer_range: float = attrs.field(default=0.02, validator=number(0, 1000))
    pad_token_id: int = attrs.field(default=0, validator=whole(0))

    @pad_token_id.validator
    def _in_the_vocabulary(self, _: Any, pad_id: int) -> None:
        if pad_id >= self.vocab_size:
            raise WeightsError(f"pad_token_id {pad_id} is outside the vocabulary of {self.vocab_size}")

    @property
    def max_length(self) -> int:
        """No limit."""
        return NO_LIMIT

    @property
    def vector_size(self) -> int:
        """Width of the vector of one text, before the texts of a pair are compared."""
        return {BOW: self.embedding_size, CNN: self.hidden_size, LSTM: 2 * self.hidden_size}[self.model_type]

    @property
    def dense_input(self) -> int:
        """Width of what the dense layer reads; 0: there is none."""
        if self.pairs:
            return COMPARED * self.vector_size
        return 0 if self.model_type == CNN else self.vector_size

    def shapes(self) -> dict[str, Shape]:
        """Return name -> shape of every parameter of the encoder."""
        width, size = self.embedding_size, self.hidden_size
        shapes: dict[str, Shape] = {"embeddings.weight": (self.vocab_size, width)}
        if self.model_type == CNN:
            shapes |= {"convolution.weight": (size, width, FILTER), "convolution.bias": (size,)}
        if self.model_type == LSTM:
            for end in ("l0", "l0_reverse"):
                for part, into in (("ih", width), ("hh", size)):
                    shapes[f"lstm.weight_{part}_{end}"] = (GATES * size, into)
                    shapes[f"lstm.bias_{part}_{end}"] = (GATES * size,)
        return shapes | (linear_shapes("dense", self.dense_input, size) if self.dense_input else {})
