"""What Paddle's launcher tells each process that it starts: how many there are, and which one this is."""

from __future__ import annotations

import os
import signal
import threading

LAUNCHER = "ONION_LAUNCHER"
"""The variable with the descriptor of a pipe, the other end of which ``onion train --processes`` holds."""


def world_size() -> int:
    """Return how many processes the launcher has started; 1 without a launcher."""
    return int(os.environ.get("PADDLE_TRAINERS_NUM") or 1)


def rank() -> int:
    """Return the number of this process among them, from 0; 0 without a launcher."""
    return int(os.environ.get("PADDLE_TRAINER_ID") or 0)


def local_size() -> int:
    """Return how many processes it has started on this machine; 1 without a launcher."""
    return int(os.environ.get("PADDLE_LOCAL_SIZE") or 1)


def endpoints() -> str:
    """Return the addresses of all processes, separated by commas, as the launcher gives them to each of them."""
    return os.environ.get("PADDLE_TRAINER_ENDPOINTS", "")


def first() -> tuple[str, int]:
    """Return host and port that the launcher has chosen for process 0."""
    host, _, port = endpoints().partition(",")[0].rpartition(":")
    return host or "127.0.0.1", int(port or 0)


def end_with_launcher() -> None:
    """Have this process end as after SIGTERM when the ``onion train --processes`` that started it is gone.

    Without one it does nothing.
    """
    if not (pipe := os.environ.pop(LAUNCHER, "")):
        return

    def wait() -> None:
        os.read(int(pipe), 1)  # returns when nobody holds the other end any more
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="onion-launcher", daemon=True).start()


def by_paddle() -> bool:
    """Return whether Paddle's own launcher has started this process; it sends SIGTERM three times in 0.6 seconds."""
    return {"PADDLE_TRAINER_ID", "PADDLE_LOG_DIR"} <= os.environ.keys()
