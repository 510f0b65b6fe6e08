"""The parser that commands are made of: its errors, its examples, ``--version``."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
from textwrap import dedent, indent
from typing import Any, NoReturn

import onion
from onion.cli.colours import error_line
from onion.messages import printable

MISTAKE = 2
WHEELS = ("paddlepaddle", "paddlepaddle-gpu")
"""The packages of Paddle. They overwrite each other: if both are installed, one of them is broken."""


class Parser(argparse.ArgumentParser):
    """A parser whose error messages take two lines, and whose help ends with examples.

    Args:
        examples: commands, one a line.
        settings: those of ``argparse.ArgumentParser``.
    """

    def __init__(self, *, examples: str = "", **settings: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter  # keeps the lines of the examples
        epilog = f"examples:\n{indent(dedent(examples).strip(), '  ')}" if examples else None
        super().__init__(formatter_class=formatter, epilog=epilog, **settings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse unknown arguments by the parser of their command, whose help lists the known ones."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Exit with the error and a reference to the help."""
        line = error_line(self.prog, printable(message), sys.stderr)
        self.exit(MISTAKE, f"{line}\nSee {self.prog} --help.\n")


def versions() -> str:
    """Return one line with the versions of onion, Paddle and Python, without importing Paddle."""
    from importlib.metadata import PackageNotFoundError, version

    wheels = []
    for name in WHEELS:
        try:
            wheels.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join([f"onion {onion.__version__}", *(wheels or ["no Paddle"]), f"Python {platform.python_version()}"])


class Version(argparse.Action):
    """Prints the versions, which are looked up only then, and exits."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        # It is not stored in the options, from which the settings of a training are taken.
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, **more)

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        """Print them."""
        print(versions())
        parser.exit()
