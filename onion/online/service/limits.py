"""What the service takes, and no more."""

from __future__ import annotations

import attrs

from onion.errors import OnionError
from onion.validation import is_number, is_whole

KIB = 1024
MIB = 1024 * KIB

WAIT = 60
"""Seconds that a call may wait for its answer at most."""


@attrs.frozen
class Limits:
    """How much of everything one service takes. What goes beyond is refused, and the loop never learns of it.

    A listening process cannot have more open files than the system lets it, and the training needs some of them: the
    connections are few.

    Attributes:
        body: Bytes of a request's body. Default 64 KiB.
        samples_body: The same, of ``POST /samples``. Default 16 MiB.
        sample: Bytes of one sample in it: one is read at a stretch, while the loop waits. Default 1 MiB.
        samples: Samples of one request. Default 100,000.
        uploads: ``POST /samples`` under way at once, so memory for that many bodies. Default 4.
        header: Bytes of a request's line and headers. Default 16 KiB.
        seconds: For a whole request to arrive, from the connection or the end of the request before; and for the
            other side to take what was sent. Default 30.
        connections: Open at once; the surplus is closed unheard. Default 64.
        keep_alive: Seconds that a connection without a request stays open. Default 5.
        subscribers: Of ``/events``, at once. Default 16.

    Raises:
        OnionError: A limit is not above 0, or a count is not whole.
    """

    body: int = 64 * KIB
    samples_body: int = 16 * MIB
    sample: int = MIB
    samples: int = 100_000
    uploads: int = 4
    header: int = 16 * KIB
    seconds: float = 30.0
    connections: int = 64
    keep_alive: float = 5.0
    subscribers: int = 16

    def __attrs_post_init__(self) -> None:
        """Refuse what is no limit."""
        for name, value in attrs.asdict(self).items():
            timed = name in ("seconds", "keep_alive")
            if not ((is_number(value) if timed else is_whole(value)) and value > 0):
                raise OnionError(f"Limits: {name}={value!r} is no {'number' if timed else 'whole number'} above 0.")
