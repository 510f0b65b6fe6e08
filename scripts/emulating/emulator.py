"""qemu-user, an emulator of a processor for one process: where it is, and Python under it."""

from __future__ import annotations

import platform
import shutil
import sys

NAME = "qemu-x86_64"
PROCESSOR = "max"
"""All that qemu can emulate: AVX2 and FMA; of AVX-512 nothing, which the emulated process itself looks at."""


ENVIRONMENT = {"NPY_DISABLE_CPU_FEATURES": "AVX2 X86_V3"}
"""NumPy's sorts for AVX2 give wrong orders under qemu 7.2, and right ones on a processor; NumPy's plain ones are right
on both. Its newer versions have the second name for them."""


class NoEmulatorError(Exception):
    """There is none; the message says what to do."""


def emulated(*words: str) -> list[str]:
    """Return the command that runs this Python with these arguments on the emulated processor.

    Raises:
        NoEmulatorError: it is not installed, or could not run this Python.
    """
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise NoEmulatorError(f"{NAME} runs programs for Linux on x86-64 only, and this Python is another one")
    program = shutil.which(NAME)
    if program is None:
        raise NoEmulatorError(f"{NAME} is not installed; on Debian or Ubuntu: apt-get install qemu-user")
    return [program, "-cpu", PROCESSOR, sys.executable, *words]
