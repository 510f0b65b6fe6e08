"""What onion needs of the operating system; asked here, when onion is imported, and nowhere else."""

from __future__ import annotations

import sys


def check_system() -> None:
    """Refuse a system without the locks of POSIX, and with them open files that can be replaced, forks, signals.

    Raises:
        ImportError: there are none; the message says what to do.
    """
    try:
        import fcntl  # noqa: F401
    except ImportError:
        raise ImportError(
            "onion runs on Linux and macOS: it locks the folder of a run by flock and replaces files that are open, "
            f"which {sys.platform} does not know. On Windows use WSL 2: run wsl --install, and install onion and "
            "Paddle in that Linux."
        ) from None
