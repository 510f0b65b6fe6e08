"""The machine under Paddle: its import, memory, threads, and arrays on their way to the device.

Paddle gives what it frees back to the system at once, which then hands every large tensor out as new pages, one fault
each: a tenth of a training step on the CPU. So the C library is told to keep it.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from functools import cache
from types import ModuleType
from typing import Any, cast

from onion.errors import OnionError
from onion.host.math_library import clean_environment
from onion.host.thread_count import default_threads

# Paddle writes OMP_NUM_THREADS=1 into the environment when it is imported and finds none; anything else is a wish.
_wished_threads = os.environ.get("OMP_NUM_THREADS")
if "paddle" in sys.modules and _wished_threads == "1":
    _wished_threads = None

_threads = 1  # Paddle's own choice

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # the numbers of mallopt's options
_LARGE = 1 << 30
"""Bytes that one allocation has, or that are free at the end of the heap, before the system is asked or gets them."""


def ignore_missing_ccache() -> None:
    """Keep silent of the compiler cache that Paddle misses when it is imported, by whomever; nothing is compiled.

    Whoever wants to hear of it sets a filter of their own after importing onion.
    """
    warnings.filterwarnings("ignore", "No ccache found", UserWarning, r"paddle\.utils\.cpp_extension\.")


def keep_freed_memory() -> bool:
    """Have the C library keep what is freed for what is allocated next; tell whether it can (glibc does).

    Who has chosen for themselves, by ``MALLOC_TRIM_THRESHOLD_``, ``MALLOC_MMAP_THRESHOLD_`` or ``GLIBC_TUNABLES`` in
    the environment, is left alone.
    """
    if any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")):
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return False
    return bool(set_option(_MMAP_THRESHOLD, _LARGE) and set_option(_TRIM_THRESHOLD, _LARGE))


@cache
def paddle() -> ModuleType:
    """Import Paddle.

    Raises:
        OnionError: it is not installed; the message says how to install it.
    """
    try:
        import paddle as module
    except ModuleNotFoundError as error:
        if error.name != "paddle":
            raise
        raise OnionError(
            "PaddlePaddle is not installed: pip install 'onion-paddle[cpu]' (or [gpu]; never both)."
        ) from None
    keep_freed_memory()
    clean_environment()
    return cast(ModuleType, module)


def use_threads(count: int | None = None) -> int:
    """Let Paddle compute on several processors; left alone it takes one. Return how many.

    Args:
        count: threads. Default: ``$OMP_NUM_THREADS`` if it was set before Paddle was imported, else one for every
            processor that this process may use, 8 at most (:mod:`onion.host.thread_count`).
    """
    global _threads
    _threads = chosen_threads(count)
    paddle().base.core.set_num_threads(_threads)
    return _threads


def chosen_threads(count: int | None = None) -> int:
    """Return how many threads :func:`use_threads` sets, without loading Paddle; also for other engines."""
    if count is None and _wished_threads and _wished_threads.isdecimal():
        count = int(_wished_threads)
    return count or default_threads()


def wish_threads(count: int | None) -> None:
    """Let engines other than Paddle, which is not loaded here, compute on so many threads; None changes nothing."""
    global _wished_threads
    _wished_threads = _wished_threads if count is None else str(count)


def threads() -> int:
    """Return how many threads Paddle computes on."""
    return _threads


def to_tensors(batch: Any) -> Any:
    """Turn the numpy arrays of a batch (itself an array, a dict or a tuple of them) into Paddle tensors.

    Anything else (tensors, strings, lists) stays as it is.
    """
    import numpy as np

    if isinstance(batch, np.ndarray):
        return _to_tensor(batch) if batch.dtype.kind in "biufc" else batch
    if isinstance(batch, dict):
        return {name: to_tensors(value) for name, value in batch.items()}
    if isinstance(batch, tuple):
        values = [to_tensors(value) for value in batch]
        return type(batch)(*values) if hasattr(batch, "_fields") else tuple(values)
    return batch


def to_arrays(value: Any) -> Any:
    """Turn the Paddle tensors of a value (itself a tensor, a dict or a tuple of them) into numpy arrays."""
    if isinstance(value, dict):
        return {name: to_arrays(each) for name, each in value.items()}
    if isinstance(value, tuple):
        values = [to_arrays(each) for each in value]
        return type(value)(*values) if hasattr(value, "_fields") else tuple(values)
    return value.numpy() if hasattr(value, "numpy") else value


def _to_tensor(array: Any) -> Any:
    """Do what ``paddle.to_tensor`` does with an array; Paddle 3.3.1's keeps about 112 bytes of every call for good.

    What Python makes of ``paddle.Tensor`` is never given back there (a list each); what an operator makes is. Tried on
    the CPU only, and done there only.
    """
    place = paddle().base.framework._current_expected_place()
    if not isinstance(place, paddle().CPUPlace):
        return paddle().to_tensor(array)
    tensor = paddle()._C_ops.empty(array.shape, _type(array.dtype), place)  # paddle.empty takes three times as long
    tensor.get_tensor().set(array, place)
    return tensor


@cache
def _type(dtype: Any) -> Any:
    """Return Paddle's type for one of numpy's."""
    return paddle().base.framework.convert_np_dtype_to_dtype_(dtype)


def detached(value: Any) -> Any:
    """Return a tensor (also in a dict or a tuple) without what it was computed from, which would stay in memory too.

    Anything else stays as it is.
    """
    if isinstance(value, dict):
        return {key: detached(each) for key, each in value.items()}
    if isinstance(value, tuple):
        values = [detached(each) for each in value]
        return type(value)(*values) if hasattr(value, "_fields") else tuple(values)
    return value.detach() if hasattr(value, "detach") else value
