"""Which onion, Paddle and Python there are, for reports of what went wrong."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Sequence
from typing import Any

import onion

WHEELS = ("paddlepaddle", "paddlepaddle-gpu")
"""The packages that Paddle comes in; they overwrite each other, so where both are told, one of them is broken."""


def versions() -> str:
    """Return one line with the versions; Paddle is not loaded for it."""
    from importlib.metadata import PackageNotFoundError, version

    wheels = []
    for name in WHEELS:
        try:
            wheels.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join([f"onion {onion.__version__}", *(wheels or ["no Paddle"]), f"Python {platform.python_version()}"])


class Version(argparse.Action):
    """Prints the versions, and is through; they are looked up only when they are asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        # Nothing of it stays in the options, which the settings of a training are taken from.
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, **more)

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        """Print them."""
        print(versions())
        parser.exit()
