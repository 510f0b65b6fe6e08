"""The layers of the encoder. All but the core of attention compute on packed tokens; see packing.py.

Attribute names are PaddleNLP's, because they become the parameter names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import paddle
import paddle.nn.functional as F  # noqa: N812  the name everybody knows it by
from paddle import nn

from onion.models import ops, recompute
from onion.models.adapter import Adapter, adapted
from onion.models.config import EncoderConfig
from onion.models.fused import flash
from onion.models.ops import LayerNorm
from onion.models.packing import Packing
from onion.models.pretrained_config import PretrainedConfig
from onion.models.queries import AllTokens, Queries, queries_of

ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu}


class Linear(nn.Linear):
    """A linear layer, initialized as BERT's: normal weight, zero bias; with an adapter if it is trained by LoRA."""

    def __init__(self, width_in: int, width_out: int, config: PretrainedConfig) -> None:
        super().__init__(width_in, width_out, weight_attr=normal(config))
        self.weight_lora: Adapter | None = None

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """[tokens, in] -> [tokens, out]."""
        return adapted(ops.linear(x, self.weight, self.bias), x, self.weight_lora)


class Embeddings(nn.Layer):
    """The normalized sum of the embeddings of words, positions and, where the encoder has them, segments and tasks.

    Embeddings that the encoder does not have are None.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.word_embeddings: nn.Embedding = _table(config.vocab_size, config)
        self.position_embeddings: nn.Embedding = _table(config.max_position_embeddings, config)
        self.token_type_embeddings = _table(config.type_vocab_size, config)
        self.task_type_embeddings = _table(config.tasks, config)
        self.layer_norm = LayerNorm(config.embedding_size, epsilon=config.layer_norm_eps)
        self.dropout = config.hidden_dropout_prob

    def forward(
        self,
        ids: paddle.Tensor,
        types: paddle.Tensor | None,
        positions: paddle.Tensor,
        tasks: paddle.Tensor | None = None,
    ) -> paddle.Tensor:
        """Packed int64 [tokens] each -> [tokens, hidden]; None where there are no such embeddings."""
        total = self.word_embeddings(ids) + self.position_embeddings(positions)
        if self.token_type_embeddings is not None:
            total = total + self.token_type_embeddings(types)
        if self.task_type_embeddings is not None:
            total = total + self.task_type_embeddings(tasks)
        return ops.dropout(self.layer_norm(total), self.dropout, self.training)


class SelfAttention(nn.Layer):
    """Attention within each row: by the formula below or, on a GPU in 16 bits, by flash.py."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width, heads = config.hidden_size, config.attention_size
        # Three products: splitting one would copy, and checkpoints have three weights anyway.
        self.q_proj = Linear(width, heads, config)
        self.k_proj = Linear(width, heads, config)
        self.v_proj = Linear(width, heads, config)
        self.out_proj = Linear(heads, width, config)
        self.scale = config.head_size**-0.5
        self.dropout = config.attention_probs_dropout_prob

    def forward(self, x: paddle.Tensor, queries: Queries) -> paddle.Tensor:
        """[tokens, hidden] -> [queries, hidden]."""
        packing = queries.packing
        query, key = self.q_proj(queries.pick(x)), self.k_proj(x)
        dtype = flash.precision(query, packing.heads) if isinstance(queries, AllTokens) else None
        if dtype is not None:
            dropout = self.dropout if self.training else 0.0
            return self.out_proj(flash.attend(query, key, self.v_proj(x), packing, self.scale, dropout, dtype))
        scores = self.scores(query, key, queries)
        value = packing.split_heads(self.v_proj(x))
        probabilities = ops.dropout(F.softmax(scores), self.dropout, self.training)
        return self.out_proj(queries.merge_heads(paddle.matmul(probabilities, value)))

    def scores(self, query: paddle.Tensor, key: paddle.Tensor, queries: Queries) -> paddle.Tensor:
        """Outputs of ``q_proj`` and ``k_proj`` -> scores before the softmax, [batch, heads, queries a row, length].

        They are near -1e9 for padded keys, and undefined for padded queries.
        """
        heads = queries.split_heads(query * self.scale), queries.packing.split_heads(key)
        scores = paddle.matmul(*heads, transpose_y=True)
        return scores if queries.bias is None else scores + queries.bias


class EncoderLayer(nn.Layer):
    """Attention, then a feed-forward network; after each: dropout, residual, LayerNorm (post-LN)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.self_attn = SelfAttention(config)
        self.linear1 = Linear(width, config.intermediate_size, config)
        self.linear2 = Linear(config.intermediate_size, width, config)
        self.norm1 = LayerNorm(width, epsilon=config.layer_norm_eps)
        self.norm2 = LayerNorm(width, epsilon=config.layer_norm_eps)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.dropout = config.hidden_dropout_prob

    def forward(self, x: paddle.Tensor, packing: Packing, firsts_only: bool = False) -> paddle.Tensor:
        """[tokens, hidden] -> [tokens, hidden]; or [batch, hidden], of the first token of each row."""
        queries = queries_of(packing, firsts_only)
        attended = self.self_attn(x, queries)
        x = self.norm1(queries.pick(x) + ops.dropout(attended, self.dropout, self.training))
        transformed = self.linear2(self.activation(self.linear1(x)))
        return self.norm2(x + ops.dropout(transformed, self.dropout, self.training))


class EncoderLayers(nn.Layer):
    """The layers in sequence."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.layers = nn.LayerList([EncoderLayer(config) for _ in range(config.num_hidden_layers)])

    def forward(
        self, x: paddle.Tensor, packing: Packing, firsts_only: bool = False, recomputing: bool = False
    ) -> paddle.Tensor:
        """[tokens, hidden] -> [tokens, hidden]; or [batch, hidden], of the first token of each row.

        With ``recomputing``, layers keep their inputs only (models/recompute.py).
        """
        *below, last = [partial(recompute.call, layer) if recomputing else layer for layer in self.layers]
        for layer in below:
            x = layer(x, packing)
        # A user's layer need not accept firsts_only, and is not given it (dispatch.py).
        return last(x, packing, firsts_only) if firsts_only else last(x, packing)


class Pooler(nn.Layer):
    """A linear layer over the token that represents a text, with dropout before and an activation after it."""

    def __init__(
        self,
        config: PretrainedConfig,
        activation: Callable[[paddle.Tensor], paddle.Tensor] | None = paddle.tanh,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size, config)
        self.activation = activation
        self.dropout = dropout

    def forward(self, token: paddle.Tensor) -> paddle.Tensor:
        """[batch, hidden] -> [batch, hidden]."""
        pooled = self.dense(ops.dropout(token, self.dropout, self.training))
        return pooled if self.activation is None else self.activation(pooled)


def _table(size: int, config: EncoderConfig) -> nn.Embedding | None:
    return nn.Embedding(size, config.embedding_size, weight_attr=normal(config)) if size else None


def normal(config: PretrainedConfig) -> paddle.ParamAttr:
    """Return the initializer of the weights of BERT and its relatives."""
    return paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, config.initializer_range))
