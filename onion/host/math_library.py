"""The CPU's math library under Paddle: its kernels, and how long its threads wait, both chosen before it is loaded.

Paddle's CPU wheels link an MKL that takes a slow path on AMD processors (Paddle issue 75760), unless
``MKL_DEBUG_CPU_TYPE`` in the environment names its kernels: 5 are those for AVX2, 7 those for AVX-512. Two cores of an
AMD EPYC without AVX-512 went up from about 50 to about 150 GFLOP/s in a 1024x768x3072 product; two that have it (Zen 5)
reach about 210 with 5 and 440 with 7. On other processors nothing is chosen. And threads that wait for the next product
are told to let go of their processor after a millisecond, because others compute meanwhile (models/fused/training).

Both libraries read the environment when something is first asked of them, and Paddle does so with the first product it
computes. So it does not matter whether Paddle or onion is imported first; and what was put into the environment can go
again as soon as it was read, so that child processes do not inherit it.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import warnings
from collections.abc import MutableMapping
from itertools import takewhile
from pathlib import Path

VARIABLE = "MKL_DEBUG_CPU_TYPE"
AVX2, AVX512 = "5", "7"
SPINNING = "KMP_BLOCKTIME"
"""Milliseconds for which a thread of the math library that has nothing to do keeps its processor, by default 200."""

READERS = {VARIABLE: ("libmklml_intel.so", "mkl_serv_cpu_detect"), SPINNING: ("libiomp5.so", "omp_get_max_threads")}
"""Variable -> the library beside Paddle that reads it, and a function of it, which does that when it is first called.
That of MKL is not in its manual. It returns the kernels: 5, 7, and 0 on an AMD processor for which none were named."""

CPUINFO = Path("/proc/cpuinfo")

_SKYLAKE = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
"""What MKL's kernels for AVX-512 were made for."""

log = logging.getLogger("onion")

_ours: dict[str, str] = {}
"""Variables that this module has set in the environment of the process."""


def set_up_math_library(environment: MutableMapping[str, str] = os.environ, cpuinfo: Path | None = None) -> None:
    """Choose MKL's kernels on AMD processors, and let idle threads go, if neither was chosen.

    Args:
        environment: where the variables are read and set.
        cpuinfo: the kernel's description of the processor; default ``$ONION_CPUINFO`` or /proc/cpuinfo.
    """
    kernels = kernels_for(cpuinfo or Path(environment.get("ONION_CPUINFO", CPUINFO)))
    _choose(SPINNING, "1", environment)
    if kernels is None:
        log.debug("%s is not needed on this processor", VARIABLE)
    elif not _choose(VARIABLE, kernels, environment):
        log.debug("%s=%s was set already and is kept", VARIABLE, environment[VARIABLE])
    elif "paddle" in sys.modules and _is_loaded(VARIABLE) and _read(VARIABLE) != int(kernels):
        warnings.warn(
            "Paddle has computed before onion was imported, so its math library runs slowly on this AMD processor; "
            f"import onion before the first computation, or set {VARIABLE}={kernels} in the environment.",
            RuntimeWarning,
            stacklevel=3,
        )
    else:
        log.debug("set %s=%s for this AMD processor", VARIABLE, kernels)


def _choose(name: str, value: str, environment: MutableMapping[str, str]) -> bool:
    """Set a variable, unless it was set."""
    if name in environment:
        return False
    environment[name] = _ours[name] = value
    return True


def clean_environment(environment: MutableMapping[str, str] = os.environ) -> None:
    """Have the libraries read now what was set for them, and leave the environment as it was before; Paddle is loaded.

    What they cannot be asked to read (another library than MKL, another system) stays set.
    """
    for name, value in list(_ours.items()):
        if _read(name) is not None:
            del _ours[name]
            if environment.get(name) == value:
                del environment[name]


def _read(name: str) -> int | None:
    """Have a library read its variable, if it has not; return what it made of it. None: there is no such library."""
    function = READERS[name][1]
    try:
        return int(getattr(ctypes.CDLL(str(_library(name))), function)())
    except (OSError, AttributeError):
        return None


def _is_loaded(name: str) -> bool:
    try:
        ctypes.CDLL(str(_library(name)), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except (OSError, AttributeError):  # AttributeError: a system without RTLD_NOLOAD
        return False
    return True


def _library(name: str) -> Path:
    """Return where Paddle has the library that reads a variable."""
    return Path(sys.modules["paddle"].__file__ or "").parent / "libs" / READERS[name][0]


def kernels_for(cpuinfo: Path) -> str | None:
    """Return the number of the kernels that the first processor wants to be named; None: none, or it cannot be read."""
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as lines:
            first = dict(map(_field, takewhile(str.strip, lines)))
    except OSError:
        return None
    flags = set(first.get("flags", "").split())
    if first.get("vendor_id") != "AuthenticAMD" or "avx2" not in flags:
        return None
    return AVX512 if flags >= _SKYLAKE else AVX2


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()
