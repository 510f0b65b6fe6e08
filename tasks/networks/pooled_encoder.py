"""An encoder with one vector for each text."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from onion.models.ops import as_tensor
from onion.models.pretrained_encoder import PretrainedEncoder
from onion.tasks.batches import arguments
from onion.tasks.embedding.pooling import check_pooling


class PooledEncoder(nn.Layer):
    """An encoder that pools its token vectors into one vector per text.

    * ``cls``: the vector of the classification token: the first token, in XLNet the last.
    * ``mean``: the mean over all tokens including ``[CLS]`` and ``[SEP]``, without padding (Sentence-BERT, Reimers and
      Gurevych 2019, section 3).
    * ``pooler``: the encoder's pooled output, a linear layer and tanh over the classification token.

    Args:
        encoder: its parameters are shared, not copied.
        pooling: one of ``POOLINGS``.
        layer: use the vectors of this layer, from 1; higher layers are not computed. Default: the last.
        normalize: divide each vector by its Euclidean norm.
        tokens: return the token vectors, too.

    Raises:
        DataError: the pooling is unknown, or the encoder does not have the layer.
    """

    def __init__(
        self,
        encoder: PretrainedEncoder,
        pooling: str = "cls",
        layer: int | None = None,
        normalize: bool = False,
        tokens: bool = False,
    ) -> None:
        super().__init__()
        check_pooling(pooling, layer, encoder.config.num_hidden_layers)
        if layer is None or layer == encoder.config.num_hidden_layers:
            self.encoder = encoder
        else:
            self.encoder = encoder.first_layers(layer)
        self.pooling, self.normalize, self.tokens = pooling, normalize, tokens

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor | tuple[paddle.Tensor, paddle.Tensor]:
        """Return the vectors of a batch as made by ``onion.tasks.batches.batch_of``.

        Returns:
            float32 ``[batch, hidden]``; with ``tokens`` also the vectors of all tokens of the layer, row by row without
            padding: float32 ``[tokens, hidden]``.
        """
        cls_only = self.pooling != "mean" and not self.tokens
        encoded = self.encoder(**arguments(batch), cls_only=cls_only)
        if self.pooling == "pooler":
            vectors = encoded.pooled_output
        elif self.pooling == "cls":
            vectors = encoded.cls
        else:
            counts = as_tensor(encoded.packing.mask.sum(axis=1, keepdims=True).astype(np.float32))
            vectors = encoded.sequence_output.astype("float32").sum(axis=1) / counts  # padding is zero there
        vectors = vectors.astype("float32")
        if self.normalize:
            vectors = functional.normalize(vectors, axis=1)
        return (vectors, encoded.packed.astype("float32")) if self.tokens else vectors
