"""What the service of a run accepts at most."""

from __future__ import annotations

import attrs

from onion.http.limits import KIB, MIB, ConnectionLimits

MAX_WAIT_SECONDS = 60  # longest time that a call may wait for its answer


@attrs.frozen
class Limits(ConnectionLimits):
    """How much one service accepts. What exceeds a limit is refused without disturbing the loop.

    The system limits the open files of a process, and the training needs some: the number of connections is small.

    Attributes:
        body: Bytes of a request body. Default 64 KiB.
        samples_body: The same for ``POST /samples``. Default 16 MiB.
        sample: Bytes of one sample, whose parsing blocks the loop. Default 1 MiB.
        samples: Samples of one request. Default 100,000.
        uploads: Concurrent ``POST /samples``, each of which holds a body in memory. Default 4.
        header: Bytes of a request line and its headers. Default 16 KiB.
        seconds: For a request to arrive completely, from the start of the connection or the end of the previous
            request; and for the client to read a response. Default 30.
        connections: Concurrent connections; further ones are closed unread. Default 64.
        keep_alive: Seconds that a connection without a request stays open. Default 5.
        subscribers: Concurrent subscribers of ``/events``. Default 16.

    Raises:
        OnionError: A limit is not above 0, or a count is not an integer.
    """

    body: int = 64 * KIB
    samples_body: int = 16 * MIB
    sample: int = MIB
    samples: int = 100_000
    uploads: int = 4
    subscribers: int = 16
