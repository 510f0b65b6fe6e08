"""The control channel: what ranks tell each other in a few bytes, apart from tensors.

A collective of Paddle fails after 30 seconds where one rank comes late (gloo), and says nothing of who is missing or
why. Here all others are connected to rank 0 by a socket each. It waits as long as it is told, notices at once when a
process is gone, and passes on what each rank has to say. Ranks that have nothing special to say send the same bytes,
and get a single byte back: about 0.1 milliseconds among processes of one machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from selectors import EVENT_READ, DefaultSelector
from time import monotonic
from typing import Any, TypeAlias

from onion.distributed.meeting import meet
from onion.errors import RankError
from onion.host import launch

Message: TypeAlias = dict[str, Any]
"""What a rank says: JSON."""

SAME = b"="
"""The answer of rank 0 where all ranks have said the same."""

FAILED = "failed"
"""The key of the message of a rank that leaves with an error; its value is the error."""

FAILURE = b'{"failed"'
"""How such a message begins."""

GONE = "its process ended without a word (killed, or crashed; its own log may tell more)"


class Channel:
    """The connections of this rank.

    Args:
        rank: of this process.
        others: rank 0: the connections to ranks 1, 2, ...; other ranks: that to rank 0.
        timeout: seconds to wait for the slowest rank.
    """

    def __init__(self, rank: int, others: dict[int, Connection], timeout: float) -> None:
        self.rank, self.timeout = rank, timeout
        self._others = others
        self._failed = False
        self._arrivals = DefaultSelector()  # kept: to make one for 1,000 ranks takes longer than to read from them
        for other, connection in others.items():
            self._arrivals.register(connection, EVENT_READ, other)

    @classmethod
    def open(cls, timeout: float) -> Channel:
        """Connect all ranks to rank 0.

        Args:
            timeout: seconds to wait for the slowest rank, here and in every exchange.
        """
        return cls(launch.rank(), meet(timeout), timeout)

    def exchange(self, message: Message, timeout: float | None = None) -> list[Message] | None:
        """Gather a message of each rank, on all of them.

        Args:
            message: of this rank.
            timeout: seconds to wait for the slowest rank. Default: that of the channel.

        Returns:
            The messages of all ranks, in order; None: all ranks have said the same.

        Raises:
            RankError: a rank has failed, is gone, or did not come in time; the message names it.
        """
        own, timeout = json.dumps(message).encode(), self.timeout if timeout is None else timeout
        answer = self._as_first(own, timeout) if self.rank == 0 else self._as_other(own, timeout)
        if answer == SAME:
            return None
        told: list[Message] = json.loads(answer)
        failed = [f"rank {rank}: {each[FAILED]}" for rank, each in enumerate(told) if FAILED in each]
        if failed:
            raise RankError("; ".join(failed))
        return told

    def scatter(self, messages: Sequence[Message] = ()) -> Message:
        """Scatter messages from rank 0, without an answer; return that of this rank.

        Args:
            messages: on rank 0: for each rank.

        Raises:
            RankError: rank 0 has failed, is gone, or did not come in time.
        """
        if self.rank == 0:
            for rank, connection in self._others.items():
                content = json.dumps(messages[rank]).encode()
                with suppress(OSError):  # gone: its failure is told at the next exchange
                    connection.send_bytes(content)
            return messages[0]
        given = json.loads(self._answer(self.timeout))
        if isinstance(given, list):
            raise RankError(f"rank 0: {given[0][FAILED]}")
        message: Message = given
        return message

    def fail(self, why: str) -> None:
        """Let the others know that this rank leaves with an error; their next exchange raises it.

        The connections stay open until the process ends, so that nobody finds them closed before having read it.
        """
        if self._failed:
            return
        self._failed = True
        try:
            if self.rank == 0:
                self._tell(json.dumps([{FAILED: why}]).encode())
            else:
                self._others[0].send_bytes(json.dumps({FAILED: why}).encode())
        except OSError:
            pass  # they are gone too

    def _as_first(self, own: bytes, timeout: float) -> bytes:
        """Receive from all others, and answer them."""
        received = self._gathered(timeout)
        if all(each == own for each in received.values()):
            answer = SAME
        else:
            answer = b"[" + b",".join([own, *received.values()]) + b"]"
        self._tell(answer)
        return answer

    def _gathered(self, timeout: float) -> dict[int, bytes]:
        """Return the message of each other rank; one that is gone has failed, and so has one that is late.

        A rank that says something more before it is answered has failed meanwhile.
        """
        received: dict[int, bytes] = {}
        end = monotonic() + timeout
        failed = late = False
        while len(received) < len(self._others) and not failed and not late:
            ready = [key.data for key, _ in self._arrivals.select(max(0.0, end - monotonic()))]
            received |= {rank: _received(self._others[rank]) for rank in ready}
            failed, late = any(received[rank].startswith(FAILURE) for rank in ready), not ready
        missing = json.dumps({FAILED: f"did not come within {timeout:g} seconds"} if late else {}).encode()
        return {rank: received.get(rank, missing) for rank in self._others}

    def _tell(self, answer: bytes) -> None:
        for connection in self._others.values():
            try:
                connection.send_bytes(answer)
            except OSError:
                continue  # gone: its failure is told at the next exchange

    def _as_other(self, own: bytes, timeout: float) -> bytes:
        """Tell rank 0, and receive its answer."""
        with suppress(OSError):  # rank 0 is gone; what it has said before may be there to read
            self._others[0].send_bytes(own)
        return self._answer(timeout)

    def _answer(self, timeout: float) -> bytes:
        """Return what rank 0 says next; the failure, if it is gone or late."""
        first = self._others[0]
        try:
            if not first.poll(2 * timeout):  # rank 0 waits that long for the slowest, and then says so
                return json.dumps([{FAILED: f"did not answer within {2 * timeout:g} seconds"}]).encode()
            return first.recv_bytes()
        except (EOFError, OSError):
            return json.dumps([{FAILED: GONE}]).encode()


def _received(connection: Connection) -> bytes:
    try:
        return connection.recv_bytes()
    except (EOFError, OSError):
        return json.dumps({FAILED: GONE}).encode()
