"""What happens inside an encoder while it computes a batch: hidden states and attention, layer by layer.

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


@attrs.define(eq=False, repr=False)
class HiddenStates:
    """The inner values of one batch. Layers count from 1, as in ``PooledEncoder``; 0 stands for the embeddings.

    Attributes:
        outputs: what the network over the encoder gave, where a :class:`WithHiddenStates` made this; else None.
        packing: where the tokens stand in the padded batch.
        hidden: layer -> [tokens, hidden], its hidden states, row by row and without padding.
    """

    outputs: Any = None
    packing: Packing | None = None
    hidden: dict[int, paddle.Tensor] = attrs.field(factory=dict)
    _attention: dict[int, _Attention] = attrs.field(factory=dict, init=False)

    def scores(self, layer: int) -> paddle.Tensor:
        """Return a layer's attention before the softmax, float ``[batch, heads, length, length]``.

        The last axis goes over the keys; near -1e9 for padded ones, and without meaning for padded queries. It is
        computed when it is asked for, from what the layer's projections gave, and it has a gradient if these have.
        """
        attention = self._attention[layer]
        return attention.layer.scores(attention.query, attention.key, AllTokens(self.tokens))

    @property
    def tokens(self) -> Packing:
        """``packing``, of a network that has run."""
        assert self.packing is not None
        return self.packing


@attrs.define(eq=False)
class _Attention:
    """A layer, and what its projections gave: [tokens, hidden] each."""

    layer: SelfAttention
    query: paddle.Tensor | None = None
    key: paddle.Tensor | None = None


@contextmanager
def record_hidden_states(encoder: PretrainedEncoder) -> Iterator[HiddenStates]:
    """Note what the encoder's layers give while the body runs; of several batches the last one's.

    Paddle's forward hooks do it, which are gone afterwards; so an encoder that nobody looks into pays nothing.

    Raises:
        CompositionError: the encoder is none of BERT's relatives.
    """
    if not isinstance(encoder, Encoder):
        raise CompositionError(
            f"{type(encoder).__name__} does not show hidden states and attention; only BERT and its relatives do"
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
    """Have ``note(inputs, output)`` called until ``hooks`` is closed; what a hook returns would replace the output."""

    def hook(_: paddle.nn.Layer, inputs: Any, output: Any) -> None:
        note(inputs, output)

    hooks.callback(layer.register_forward_post_hook(hook).remove)


class WithHiddenStates:
    """A network over an encoder, whose outputs are an :class:`HiddenStates` with its own outputs in it.

        Forward(Transparent(teacher)), GradientMachine(Transparent(student), loss)

    It is the network itself in all but that: it has the same parameters by the same paths and the same mode, so what
    was learned through it is saved as the network's.

    Args:
        network: a layer that is called with a batch and holds an :class:`Encoder` as ``encoder``.
    """

    def __init__(self, network: paddle.nn.Layer) -> None:
        self.network = network

    def __call__(self, batch: Any) -> HiddenStates:
        """Compute the batch, and tell what happened inside."""
        with record_hidden_states(self.network.encoder) as inside:
            inside.outputs = self.network(batch)
        return inside

    def __getattr__(self, name: str) -> Any:
        if name == "network":  # not set yet: something is making a copy
            raise AttributeError(name)
        return getattr(self.network, name)
