"""What services accept at most."""

from __future__ import annotations

from typing import ClassVar

import attrs

from onion.errors import OnionError
from onion.validation import is_number, is_whole

KIB = 1024
MIB = 1024 * KIB


@attrs.frozen
class ConnectionLimits:
    """How much one service accepts of connections and requests.

    Attributes:
        body: Bytes of a request body. Default 1 MiB.
        header: Bytes of a request line and its headers. Default 16 KiB.
        seconds: For a request to arrive completely, from the start of the connection or the end of the previous
            request; and for the client to read a response. Default 30.
        connections: Concurrent connections; further ones are closed unread. Default 64.
        keep_alive: Seconds that a connection without a request stays open. Default 5.

    Raises:
        OnionError: A limit is not above 0, or a count is not an integer.
    """

    numbers: ClassVar[tuple[str, ...]] = ("seconds", "keep_alive")

    body: int = MIB
    header: int = 16 * KIB
    seconds: float = 30.0
    connections: int = 64
    keep_alive: float = 5.0

    def __attrs_post_init__(self) -> None:
        """Validate all limits."""
        for name, value in attrs.asdict(self).items():
            timed = name in self.numbers
            if not ((is_number(value) if timed else is_whole(value)) and value > 0):
                told = f"{name} must be {'a number' if timed else 'an integer'} > 0, got {value!r}."
                raise OnionError(f"{type(self).__name__}: {told}")
