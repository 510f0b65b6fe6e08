"""The arguments of an encoder, checked and packed: ids of the tokens of a padded batch, without the padding."""

from __future__ import annotations

import numpy as np
import paddle

from onion.errors import DataError
from onion.models.ops import as_tensor, on_cpu
from onion.models.packing import Ids, Packing, check_array, check_integers, on_host


def mask_of(input_ids: Ids, attention_mask: Ids | None, pad_token_id: int) -> np.ndarray:
    """Return where the tokens stand: the mask that was given, or where the ids are not padding; [batch, length].

    Raises:
        DataError: an argument is no array, or their shapes differ.
    """
    if attention_mask is None:
        tokens: np.ndarray = on_host("input_ids", input_ids) != pad_token_id
        return tokens
    mask = on_host("attention_mask", attention_mask)
    check_array("input_ids", input_ids)
    _check_shape("attention_mask", mask, input_ids)
    return mask


def packed_ids(name: str, values: Ids, packing: Packing, size: int) -> paddle.Tensor:
    """The ids of the tokens: int64 [tokens]. On the host, that each lies in [0, size) is checked; size 0 admits 0.

    Raises:
        DataError: these are no integers of the batch's shape, or an id has no embedding.
    """
    check_integers(name, values)
    _check_shape(name, values, packing.mask)
    if isinstance(values, paddle.Tensor) and not on_cpu(values):
        return packing.pack(values).astype("int64")
    # A few hundred integers: numpy picks and checks them faster than kernels would.
    ids = packing.pack(on_host(name, values)).astype(np.int64, copy=False)
    check_ids(name, int(ids.min()), int(ids.max()), size)
    return as_tensor(ids)


def chosen_ids(name: str, values: Ids | int | None, default: int, packing: Packing, size: int) -> paddle.Tensor | None:
    """The ids for embeddings that not every encoder has (``size`` 0); given none or one, it is every token's.

    Raises:
        DataError: as :func:`packed_ids`.
    """
    if values is None and not size:
        return None
    if values is None or isinstance(values, (int, np.integer)):
        value = default if values is None else int(values)
        check_ids(name, value, value, size)
        return as_tensor(np.full(packing.tokens, value, np.int64)) if size else None
    ids = packed_ids(name, values, packing, size)
    return ids if size else None


def check_ids(name: str, low: int, high: int, size: int) -> None:
    """Refuse ids from ``low`` to ``high`` of which one has no embedding among ``size``.

    Raises:
        DataError: the message names the id and what there is.
    """
    if low < 0 or high >= max(size, 1):
        known = f"embeddings for 0 to {size - 1}" if size else "no embeddings for them"
        raise DataError(f"{name} holds {low if low < 0 else high}; the encoder has {known}")


def _check_shape(name: str, values: Ids, input_ids: Ids) -> None:
    if list(values.shape) != list(input_ids.shape):
        raise DataError(f"{name} has the shape {list(values.shape)}, input_ids {list(input_ids.shape)}")
