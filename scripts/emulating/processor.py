"""A processor that has AVX2 and no AVX-512, as the environment of a process tells of it."""

from __future__ import annotations

import os
from pathlib import Path

CPUINFO = """\
processor\t: 0
vendor_id\t: AuthenticAMD
model name\t: AVX2 without AVX-512
flags\t\t: fpu sse sse2 pni ssse3 fma sse4_1 sse4_2 movbe popcnt aes avx f16c bmi1 avx2 bmi2
"""
CHOSEN = ("MKL_DEBUG_CPU_TYPE", "ONEDNN_MAX_CPU_ISA")
"""Which kernels the math libraries take: MKL's number for AMD processors, and oneDNN's limit."""


def described(folder: Path) -> dict[str, str]:
    """Return our environment, with a description of such a processor that is written into a folder.

    Under qemu-user /proc/cpuinfo is that of the machine, whatever is emulated. What this process has chosen for the
    machine's own processor is left out, so that onion chooses again.
    """
    path = folder / "cpuinfo"
    path.write_text(CPUINFO, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if name not in CHOSEN}
    return {**kept, "ONION_CPUINFO": str(path)}


def limited(folder: Path) -> dict[str, str]:
    """Return the same, with the math libraries held to their kernels for AVX2 on the machine's own processor."""
    return {**described(folder), **dict(zip(CHOSEN, ("5", "AVX2"), strict=True))}
