"""Colours on terminals, and nowhere else.

As argparse of Python 3.14 and other tools decide: ``NO_COLOR`` (https://no-color.org) and ``FORCE_COLOR`` in the
environment, otherwise a terminal that is not ``dumb``.
"""

from __future__ import annotations

import os
from typing import IO

_RED, _PLAIN = "\x1b[1;31m", "\x1b[0m"


def has_colours(stream: IO[str]) -> bool:
    """Return whether a stream shows colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()


def error_line(prefix: str, message: str, stream: IO[str]) -> str:
    """Return ``prefix: message``, with the prefix in red where the stream shows colours."""
    return f"{_RED}{prefix}:{_PLAIN} {message}" if has_colours(stream) else f"{prefix}: {message}"
