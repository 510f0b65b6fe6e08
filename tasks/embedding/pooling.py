"""How the vectors of tokens become one vector of a text. Without Paddle."""

from __future__ import annotations

import attrs
from attrs.validators import in_, instance_of, optional

from onion.errors import DataError
from onion.models.tokenization.pre_tokenizer import whole
from onion.tasks.embedding.names import CLS, MAX_LENGTH, POOLINGS


@attrs.frozen
class Pooling:
    """How an encoder makes a vector of a text; see :class:`onion.tasks.networks.pooled_encoder.PooledEncoder`.

    Attributes:
        pooling: one of ``POOLINGS``.
        layer: whose vectors are taken, from 1; None: the last.
        normalize: whether a vector is divided by its length.
        max_length: tokens of a text.
    """

    pooling: str = attrs.field(default=CLS, validator=in_(POOLINGS))
    layer: int | None = attrs.field(default=None, validator=optional(instance_of(int)))
    normalize: bool = attrs.field(default=False, validator=instance_of(bool))
    max_length: int = attrs.field(default=MAX_LENGTH, validator=instance_of(int))


def check_pooling(pooling: str, layer: int | None, layers: int) -> None:
    """Refuse an unknown pooling, and a layer that an encoder of ``layers`` layers does not have.

    Raises:
        DataError: the message lists the possible values.
    """
    if pooling not in POOLINGS:
        raise DataError(f"pooling {pooling!r}: there is no such pooling; choose one of {', '.join(POOLINGS)}.")
    if layer is None:
        return
    if not 1 <= whole("layer", layer) <= layers:
        raise DataError(f"layer {layer}: the encoder has the layers 1 to {layers}; choose one of them.")
    if pooling == "pooler" and layer != layers:
        raise DataError(f"layer {layer}: the pooler belongs to the last layer, {layers}; use pooling cls or mean.")
