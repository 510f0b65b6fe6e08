"""Record an encoder's hidden states and attention scores, layer by layer.

with record_hidden_states(network.encoder) as inside:
    logits = network(batch)
inside.hidden[6], inside.scores(6)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import attrs
import paddle

from onion.errors import CompositionError
from onion.models.encoder import Encoder
from onion.models.layers import EncoderLayer, SelfAttention
from onion.models.packing import Packing
from onion.models.pretrained_encoder import PretrainedEncoder
from onion.models.queries import AllTokens
from onion.models.wrapped import WrappedNetwork


@attrs.define(eq=False, repr=False)
class HiddenStates:
    """The inner values of one batch. Layers count from 1, as in ``PooledEncoder``; 0 is the output of the embeddings.

    Attributes:
        outputs: the outputs of the network, if a :class:`WithHiddenStates` recorded this; else None.
        packing: the positions of the tokens in the padded batch.
        hidden: layer -> hidden states [tokens, hidden], row by row without padding.
    """

    outputs: Any = None
    packing: Packing | None = None
    hidden: dict[int, paddle.Tensor] = attrs.field(factory=dict)
    _attention: dict[int, _Attention] = attrs.field(factory=dict, init=False)

    def scores(self, layer: int) -> paddle.Tensor:
        """Return a layer's attention scores before the softmax, float ``[batch, heads, length, length]``.

        The last axis is that of the keys; scores of padded keys are near -1e9, those of padded queries are undefined.
        They are computed on demand from the layer's projections, and are differentiable if these are.
        """
        attention = self._attention[layer]
        return attention.layer.scores(attention.query, attention.key, AllTokens(self.tokens))

    @property
    def tokens(self) -> Packing:
        """``packing``, once the network has run."""
        assert self.packing is not None
        return self.packing


@attrs.define(eq=False)
class _Attention:
    """A layer, and the outputs of its projections: [tokens, hidden] each."""

    layer: SelfAttention
    query: paddle.Tensor | None = None
    key: paddle.Tensor | None = None


@contextmanager
def record_hidden_states(encoder: PretrainedEncoder) -> Iterator[HiddenStates]:
    """Record what the encoder's layers compute in the body; of several batches, the last one's.

    Paddle's forward hooks record it, and are removed afterwards.

    Raises:
        CompositionError: the encoder is not BERT, RoBERTa, ERNIE or ELECTRA, or has gradient checkpointing, which keeps
            none of this.
    """
    if not isinstance(encoder, Encoder):
        raise CompositionError(
            f"hidden states and attention cannot be recorded of a {type(encoder).__name__}, only of BERT, RoBERTa, "
            "ERNIE and ELECTRA"
        )
    if encoder.gradient_checkpointing and encoder.training:
        raise CompositionError(
            "hidden states and attention cannot be recorded in training with gradient checkpointing, which keeps none "
            "of them for the gradients; set encoder.gradient_checkpointing = False"
        )
    inside = HiddenStates()
    with ExitStack() as hooks:
        embeddings = getattr(encoder, "embeddings_project", None) or encoder.embeddings
        _on_output(hooks, embeddings, lambda _, embedded: inside.hidden.update({0: embedded}))
        for number, layer in enumerate(encoder.encoder.layers, start=1):
            _watch(hooks, inside, number, layer)
        yield inside


def _watch(hooks: ExitStack, inside: HiddenStates, number: int, layer: EncoderLayer) -> None:
    attention = inside._attention[number] = _Attention(layer.self_attn)

    def note(inputs: tuple[Any, ...], hidden: paddle.Tensor) -> None:
        inside.packing = inputs[1]
        inside.hidden[number] = hidden

    _on_output(hooks, layer, note)
    _on_output(hooks, layer.self_attn.q_proj, lambda _, query: setattr(attention, "query", query))
    _on_output(hooks, layer.self_attn.k_proj, lambda _, key: setattr(attention, "key", key))


def _on_output(hooks: ExitStack, layer: paddle.nn.Layer, note: Callable[[Any, Any], object]) -> None:
    """Call ``note(inputs, output)`` after a layer, until ``hooks`` is closed."""

    def hook(_: paddle.nn.Layer, inputs: Any, output: Any) -> None:
        note(inputs, output)

    hooks.callback(layer.register_forward_post_hook(hook).remove)


class WithHiddenStates(WrappedNetwork):
    """A network whose outputs are a :class:`HiddenStates` that contains its own outputs.

        Forward(WithHiddenStates(teacher)), GradientMachine(WithHiddenStates(student), loss)

    Args:
        network: a layer that is called with a batch and has an :class:`Encoder` as ``encoder``.
    """

    def __call__(self, batch: Any) -> HiddenStates:
        """Compute the batch and return what was recorded."""
        with record_hidden_states(self.network.encoder) as inside:
            inside.outputs = self.network(batch)
        return inside
