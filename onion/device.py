"""The machine under Paddle: the CPU's math library, and arrays on their way to the device.

Paddle's CPU wheels link an MKL that takes a slow path on AMD processors (Paddle issue 75760), unless
``MKL_DEBUG_CPU_TYPE`` in the environment names its kernels before Paddle loads: 5 are those for AVX2, 7 those for
AVX-512. Two cores of an AMD EPYC without AVX-512 went up from about 50 to about 150 GFLOP/s in a 1024x768x3072 product;
two that have it (Zen 5) reach about 210 with 5 and 440 with 7. On other processors nothing is set.

Paddle gives what it frees back to the system at once, which then hands every large tensor out as new pages, one fault
each: a tenth of a training step on the CPU. So the C library is told to keep it. And threads that wait for the next
product are told to let go of their processor after a millisecond, because others compute meanwhile (models/by_hand).
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import warnings
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from onion.errors import OnionError
from onion.thread_count import default_threads

VARIABLE = "MKL_DEBUG_CPU_TYPE"
AVX2, AVX512 = "5", "7"
SPINNING = "KMP_BLOCKTIME"
"""Milliseconds for which a thread of the math library that has nothing to do keeps its processor, by default 200."""

_SKYLAKE = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
"""What MKL's kernels for AVX-512 were made for."""

CPUINFO = Path("/proc/cpuinfo")

log = logging.getLogger("onion")

# Paddle writes OMP_NUM_THREADS=1 into the environment when it is imported; what stands there before is the user's wish.
_WISHED_THREADS = None if "paddle" in sys.modules else os.environ.get("OMP_NUM_THREADS")


_threads = 1  # Paddle's own choice

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # the numbers of mallopt's options
_LARGE = 1 << 30
"""Bytes that one allocation has, or that are free at the end of the heap, before the system is asked or gets them."""


def set_up_math_library(
    environment: MutableMapping[str, str] = os.environ, cpuinfo: Path | None = None, loaded: bool | None = None
) -> None:
    """Choose MKL's kernels on AMD processors, if Paddle is not loaded yet and nothing was chosen.

    Args:
        environment: where the variable is read and set.
        cpuinfo: the kernel's description of the processor; default ``$ONION_CPUINFO`` or /proc/cpuinfo.
        loaded: whether Paddle is imported already; default: look.
    """
    cpuinfo = cpuinfo or Path(environment.get("ONION_CPUINFO", CPUINFO))
    if not ("paddle" in sys.modules if loaded is None else loaded):
        environment.setdefault(SPINNING, "1")
    kernels = kernels_for(cpuinfo)
    if VARIABLE in environment:
        log.debug("%s=%s was set already and is kept", VARIABLE, environment[VARIABLE])
    elif kernels is None:
        log.debug("%s is not needed on this processor", VARIABLE)
    elif "paddle" in sys.modules if loaded is None else loaded:
        warnings.warn(
            f"Paddle was imported before onion, so its math library runs slowly on this AMD processor; import onion "
            f"first, or set {VARIABLE}={kernels} in the environment.",
            RuntimeWarning,
            stacklevel=3,
        )
    else:
        environment[VARIABLE] = kernels
        log.debug("set %s=%s for this AMD processor", VARIABLE, kernels)


def kernels_for(cpuinfo: Path) -> str | None:
    """Return the number of the kernels that the first processor wants to be named; None: none, or it cannot be read."""
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as lines:
            first = dict(_field(line) for line in _until_blank(lines))
    except OSError:
        return None
    flags = set(first.get("flags", "").split())
    if first.get("vendor_id") != "AuthenticAMD" or "avx2" not in flags:
        return None
    return AVX512 if flags >= _SKYLAKE else AVX2


def _until_blank(lines: Any) -> Any:
    for line in lines:
        if not line.strip():
            return
        yield line


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


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
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "No ccache found")  # a compiler cache; nothing is compiled
            import paddle as module
    except ModuleNotFoundError as error:
        if error.name != "paddle":
            raise
        raise OnionError(
            "PaddlePaddle is not installed: pip install 'onion-paddle[cpu]' (or [gpu]; never both)."
        ) from None
    keep_freed_memory()
    return cast(ModuleType, module)


def use_threads(count: int | None = None) -> int:
    """Let Paddle compute on several processors; left alone it takes one. Return how many.

    Args:
        count: threads. Default: ``$OMP_NUM_THREADS`` if it was set before Paddle was imported, else one for every
            processor that this process may use, 8 at most (:mod:`onion.thread_count`).
    """
    if count is None and _WISHED_THREADS and _WISHED_THREADS.isdecimal():
        count = int(_WISHED_THREADS)
    global _threads
    _threads = count or default_threads()
    paddle().base.core.set_num_threads(_threads)
    return _threads


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
