"""To wait for another process, and to find it a port."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

PATIENCE = 600.0
"""Seconds to wait for anything. Nothing takes that long, however slow or busy the machine, but what never comes."""


def until(there: Callable[[], object]) -> None:
    """Wait until a function says that something is there.

    Raises:
        SystemExit: It has not come in ten minutes.
    """
    if not comes(there):
        raise SystemExit(f"nothing came of it in {PATIENCE:g} s")


def comes(there: Callable[[], object]) -> bool:
    """Wait until a function says that something is there, ten minutes at most; return whether it has come."""
    deadline = time.monotonic() + PATIENCE
    while not there():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def free_port() -> int:
    """Return a port that nobody listens at now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
