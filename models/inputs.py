"""Check the arguments of an encoder, and pack them: the ids of a padded batch without the padding."""

from __future__ import annotations

import numpy as np
import paddle

from onion.errors import DataError
from onion.models.ops import as_tensor, on_cpu
from onion.models.packing import Ids, Packing

# bool too: segments may be given as false and true.
_INTEGERS = (paddle.int64, paddle.int32, paddle.int16, paddle.int8, paddle.uint8, paddle.bool)


def mask_of(input_ids: Ids, attention_mask: Ids | None, pad_token_id: int) -> np.ndarray:
    """Return the mask [batch, length]: ``attention_mask``, or else where the ids are not padding."""
    if attention_mask is None:
        tokens: np.ndarray = on_host("input_ids", input_ids) != pad_token_id
        return tokens
    mask = on_host("attention_mask", attention_mask)
    check_array("input_ids", input_ids)
    check_shape("attention_mask", mask, input_ids)
    return mask


def packed_ids(name: str, values: Ids, packing: Packing, size: int) -> paddle.Tensor:
    """Return the ids of the tokens, int64 [tokens]; on the host, check that they are in [0, size), or 0 for size 0."""
    check_integers(name, values)
    check_shape(name, values, packing.mask)
    if isinstance(values, paddle.Tensor) and not on_cpu(values):
        return packing.pack(values).astype("int64")
    # For a few hundred integers numpy is faster than Paddle's kernels.
    ids = packing.pack(on_host(name, values)).astype(np.int64, copy=False)
    check_ids(name, int(ids.min()), int(ids.max()), size)
    return as_tensor(ids)


def chosen_ids(name: str, values: Ids | int | None, default: int, packing: Packing, size: int) -> paddle.Tensor | None:
    """Return the ids for embeddings that not every encoder has (``size`` 0); None or one id stands for every token."""
    if values is None and not size:
        return None
    if values is None or isinstance(values, (int, np.integer)):
        value = default if values is None else int(values)
        check_ids(name, value, value, size)
        return as_tensor(np.full(packing.tokens, value, np.int64)) if size else None
    ids = packed_ids(name, values, packing, size)
    return ids if size else None


def check_ids(name: str, low: int, high: int, size: int) -> None:
    """Raise a DataError unless all ids from ``low`` to ``high`` have embeddings, of which there are ``size``."""
    if low < 0 or high >= max(size, 1):
        known = f"embeddings for 0 to {size - 1}" if size else "no such embeddings"
        raise DataError(f"{name} contains {low if low < 0 else high}; the encoder has {known}")


def check_shape(name: str, values: Ids, input_ids: Ids) -> None:
    """Raise a DataError unless an argument has the shape of the batch."""
    if list(values.shape) != list(input_ids.shape):
        raise DataError(f"{name} has the shape {list(values.shape)}, input_ids {list(input_ids.shape)}")


def check_array(name: str, values: Ids) -> None:
    """Raise a DataError unless an argument is a tensor or an array."""
    if not isinstance(values, (np.ndarray, paddle.Tensor)):
        raise DataError(f"{name} must be a tensor or a numpy array, got {type(values).__name__}")


def check_integers(name: str, values: Ids) -> None:
    """Raise a DataError unless an argument is an array of integers."""
    check_array(name, values)
    whole = values.dtype.kind in "iub" if isinstance(values, np.ndarray) else values.dtype in _INTEGERS
    if not whole:
        raise DataError(f"{name} must hold integers, got {str(values.dtype).removeprefix('paddle.')}")


def on_host(name: str, values: Ids) -> np.ndarray:
    """Return the values as an array; raise a DataError unless they are a tensor or an array."""
    check_array(name, values)
    if isinstance(values, np.ndarray):
        return values
    host: np.ndarray = (values.astype("float32") if values.dtype == paddle.bfloat16 else values).numpy()
    return host  # numpy lacks bfloat16
