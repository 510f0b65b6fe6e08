"""A processor with AVX2 and no AVX-512, as most users have one, on a machine that has both.

Each library that asks the processor is told not to use AVX-512 by the switch that it has. Two need a word more: torch's
MKL takes its kernels for AVX2 on AMD processors anyway; ONNX Runtime has no switch (inference/engines/onnx_avx2.py).
What Paddle's own kernels generate for AVX-512 (element by element, not the products) cannot be switched off.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from onion.host.math_library import AVX2, VARIABLE

VARIABLES = {VARIABLE: AVX2, "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
"""MKL in Paddle (peers on Paddle choose for themselves), oneDNN in Paddle and torch, torch's own kernels."""

HOW = """\
The machine has AVX-512; here no side uses it for products, so that the figures are those of a processor with AVX2:
MKL_DEBUG_CPU_TYPE=5 for onion, ONEDNN_MAX_CPU_ISA=AVX2 and ATEN_CPU_CAPABILITY=avx2 for all. ONNX Runtime has no such
switch: it runs from a copy in which the processor's state has no registers of AVX-512 wherever it asks for that."""


def add_limit(parser: ArgumentParser) -> None:
    """Add ``--avx2``."""
    parser.add_argument("--avx2", action="store_true", help="as on a processor without AVX-512")


def limited(settings: Namespace, name: str, title: str, how: str) -> tuple[str, str, str]:
    """Set the limit for all sides that are started from now on, if it is wanted; return what the section is called.

    Args:
        settings: with ``avx2``.
        name: of the section's file.
        title: of the section.
        how: it was measured.
    """
    if not settings.avx2:
        return name, title, how
    os.environ.update(VARIABLES)
    return f"{name}-avx2", f"{title}, without AVX-512", f"{how}\n\n{HOW}"
