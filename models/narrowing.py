"""An encoder with fewer attention heads and feed-forward neurons, as wide as before outside of its layers.

The heads and neurons that come first are kept, so they are sorted first: the most important ones to the front.

    sort_parts(encoder, heads, neurons)      # of each layer, in the order in which they shall be kept
    half = narrow(encoder, 0.5)              # parameters of its own
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import attrs
import numpy as np
import paddle

from onion.errors import CompositionError
from onion.models.auto import new_encoder
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.merging import has_adapters
from onion.models.pretrained_encoder import arrays_of
from onion.validation import is_number

HEADS, NEURONS = "heads", "neurons"

CUTS: Mapping[str, tuple[str, int]] = {
    **{f"self_attn.{part}.weight": (HEADS, 1) for part in ("q_proj", "k_proj", "v_proj")},
    **{f"self_attn.{part}.bias": (HEADS, 0) for part in ("q_proj", "k_proj", "v_proj")},
    "self_attn.out_proj.weight": (HEADS, 0),
    "linear1.weight": (NEURONS, 1),
    "linear1.bias": (NEURONS, 0),
    "linear2.weight": (NEURONS, 0),
}
"""The parameters of a layer that have a part for each head or neuron: path -> (of which, along which axis)."""


@attrs.frozen
class Cut:
    """What is kept of one parameter.

    Attributes:
        path: of the parameter in the encoder.
        axis: along which it is cut.
        kept: how many of its rows or columns are kept, the first ones.
    """

    path: str
    axis: int
    kept: int

    def of(self, array: Any) -> Any:
        """Return the part of an array or a tensor that is kept."""
        return array[: self.kept] if self.axis == 0 else array[:, : self.kept]

    def padded(self, part: paddle.Tensor, shape: Sequence[int]) -> paddle.Tensor:
        """Return a tensor of this shape with the part where it was cut from, and zeros elsewhere."""
        rest = [*shape]
        rest[self.axis] -= self.kept
        return paddle.concat([part, paddle.zeros(rest, part.dtype)], axis=self.axis)


def narrowed_config(config: EncoderConfig, width: float) -> EncoderConfig:
    """Return the config of an encoder with a share of the heads and neurons of each layer, each rounded, at least one.

    Raises:
        CompositionError: the width is not above 0 and at most 1.
    """
    if not is_number(width) or not 0 < width <= 1:
        raise CompositionError(f"width {width!r}: must be a number above 0 and at most 1, a share of the heads")
    heads = max(1, round(config.num_attention_heads * width))
    return config.changed(
        num_attention_heads=heads,
        intermediate_size=max(1, round(config.intermediate_size * width)),
        head_dim=config.head_dim if heads == config.num_attention_heads else config.head_size,
    )


def cuts(config: EncoderConfig) -> Iterator[Cut]:
    """Yield the parameters that a narrowed encoder has a part of, with this config."""
    kept = {HEADS: config.attention_size, NEURONS: config.intermediate_size}
    for layer in range(config.num_hidden_layers):
        for path, (part, axis) in CUTS.items():
            yield Cut(f"{Encoder.layers_path}.{layer}.{path}", axis, kept[part])


def narrow(encoder: Encoder, width: float) -> Encoder:
    """Return a new encoder with copies of the first heads and neurons of each layer, and of everything else.

    Args:
        encoder: stays as it is.
        width: the share of heads and of neurons; see :func:`narrowed_config`.

    Raises:
        CompositionError: the width is not above 0 and at most 1, or the encoder is not BERT, RoBERTa, ERNIE or ELECTRA.
    """
    config = narrowed_config(narrowable(encoder).config, width)
    narrower = new_encoder(config)
    assert isinstance(narrower, Encoder)
    cut = {each.path: each for each in cuts(config)}
    whole = arrays_of(encoder)
    for path, parameter in narrower.named_parameters():
        parameter.set_value(cut[path].of(whole[path]) if path in cut else whole[path])
    return narrower


def narrowable(encoder: paddle.nn.Layer) -> Encoder:
    """Return an encoder that can be narrowed.

    Raises:
        CompositionError: it is of another family.
    """
    if not isinstance(encoder, Encoder):
        raise CompositionError(
            f"a {type(encoder).__name__} cannot be narrowed, only BERT, RoBERTa, ERNIE and ELECTRA can"
        )
    return encoder


def sort_parts(encoder: Encoder, heads: Sequence[np.ndarray], neurons: Sequence[np.ndarray]) -> None:
    """Sort the heads and neurons of each layer, in place; what the encoder computes stays the same but for rounding.

    Args:
        encoder: the encoder.
        heads: of each layer the numbers of its heads in their new order, integers [heads].
        neurons: of each layer those of its neurons, integers [neurons].
    """
    size = encoder.config.head_size
    parameters = dict(encoder.named_parameters())
    for layer, (of_heads, of_neurons) in enumerate(zip(heads, neurons, strict=True)):
        columns = (np.asarray(of_heads)[:, None] * size + np.arange(size)).reshape(-1)
        order = {HEADS: columns, NEURONS: np.asarray(of_neurons)}
        for path, (part, axis) in CUTS.items():
            parameter = parameters[f"{Encoder.layers_path}.{layer}.{path}"]
            parameter.set_value(np.take(parameter.numpy(), order[part], axis))


class Narrowed:
    """A narrowed encoder for a moment: it shares what is not cut, takes copies of the rest, and gives back gradients.

    It has the parts of the whole encoder that come first, and is made once; :meth:`take` copies no more than the
    matrices that are cut.

    Args:
        whole: the encoder.
        width: see :func:`narrowed_config`.

    Attributes:
        encoder: the narrowed one.

    Raises:
        CompositionError: as :func:`narrow`; or the encoder has adapters.
    """

    def __init__(self, whole: Encoder, width: float) -> None:
        self.encoder, self._whole = narrow(whole, width), whole
        cut = {each.path: each for each in cuts(self.encoder.config)}
        parameters = dict(whole.named_parameters())
        if has_adapters(parameters):
            raise CompositionError("an encoder with adapters cannot be narrowed while it is trained")
        self._cut: list[tuple[Cut, paddle.Tensor, paddle.Tensor]] = []
        for path, own in list(self.encoder.named_parameters()):
            if path in cut:
                self._cut.append((cut[path], parameters[path], own))
            else:
                *folders, name = path.split(".")
                setattr(reduce(getattr, folders, self.encoder), name, parameters[path])

    def take(self) -> None:
        """Copy the parts of the matrices that are cut, and whether they learn and how."""
        self.encoder.gradient_checkpointing = self._whole.gradient_checkpointing
        with paddle.no_grad():
            for cut, whole, own in self._cut:
                own.set_value(cut.of(whole))
                own.stop_gradient = whole.stop_gradient

    def give(self) -> None:
        """Add the gradients of the copies to those of the whole encoder, and drop them."""
        with paddle.no_grad():
            for cut, whole, own in self._cut:
                if own.grad is not None:
                    gradient = cut.padded(own.grad, whole.shape)
                    whole.grad = gradient if whole.grad is None else whole.grad + gradient
        self.drop()

    def drop(self) -> None:
        """Clear the gradients of the copies."""
        for _, _, own in self._cut:
            own.clear_gradient(False)
