"""What a service of models accepts at most."""

from __future__ import annotations

from typing import ClassVar

import attrs

from onion.http.limits import MIB, ConnectionLimits


@attrs.frozen
class ServingLimits(ConnectionLimits):
    """How much one service accepts; what exceeds a limit is refused.

    Attributes:
        body: bytes of a request body. Default 1 MiB.
        header: see :class:`onion.http.limits.ConnectionLimits`.
        seconds: see there.
        connections: see there. Default 1024.
        keep_alive: see there. Default 75: clients keep their connections, and no training shares the process.
        texts: rows of one request. Default 256.
        tokens: of one request, of all windows over its texts. Default 65,536.
        queue: rows that wait for their turn, of all requests. Default 1024.
        batch_tokens: tokens that are computed together, padding included; a longer row is computed on its own. Default
            256: on a processor more of them gain nothing, and the others would wait.
        drain: seconds that calls under way have when the service ends. Default 30.

    Raises:
        OnionError: a limit is not above 0, or a count is not an integer.
    """

    numbers: ClassVar[tuple[str, ...]] = ("seconds", "keep_alive", "drain")

    body: int = MIB
    connections: int = 1024
    keep_alive: float = 75.0
    texts: int = 256
    tokens: int = 65_536
    queue: int = 1024
    batch_tokens: int = 256
    drain: float = 30.0

    @property
    def texts_of_a_call(self) -> int:
        """Rows of one request; more than fit into the queue could be told to try again for ever."""
        return min(self.texts, self.queue)
