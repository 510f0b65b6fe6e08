"""What the service accepts, and no more."""

from __future__ import annotations

import attrs

from onion.errors import OnionError
from onion.validation import is_number, is_whole

KIB = 1024
MIB = 1024 * KIB

MAX_WAIT_SECONDS = 60
"""How long a call may wait for its answer."""


@attrs.frozen
class Limits:
    """How much of everything one service accepts. What exceeds it is refused, and the loop is not disturbed.

    A process can only have as many open files as the system allows, and the training needs some of them: the number of
    connections is small.

    Attributes:
        body: Bytes of a request's body. Default 64 KiB.
        samples_body: The same, of ``POST /samples``. Default 16 MiB.
        sample: Bytes of one sample in it, which is parsed while the loop waits. Default 1 MiB.
        samples: Samples of one request. Default 100,000.
        uploads: Concurrent ``POST /samples``, so memory for that many bodies. Default 4.
        header: Bytes of a request's line and headers. Default 16 KiB.
        seconds: For a whole request to arrive, from the connection or the end of the previous request; and for the
            client to read what was sent. Default 30.
        connections: Open at the same time; further ones are closed unread. Default 64.
        keep_alive: Seconds that a connection without a request stays open. Default 5.
        subscribers: Of ``/events``, at the same time. Default 16.

    Raises:
        OnionError: A limit is not above 0, or a count is not an integer.
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
        """Validate all limits."""
        for name, value in attrs.asdict(self).items():
            timed = name in ("seconds", "keep_alive")
            if not ((is_number(value) if timed else is_whole(value)) and value > 0):
                raise OnionError(f"Limits: {name} must be {'a number' if timed else 'an integer'} > 0, got {value!r}.")
