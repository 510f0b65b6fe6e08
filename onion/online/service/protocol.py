"""One connection: what uvicorn's own protocol leaves open is bounded here, time and number."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from onion.online.service.limits import MIB, Limits

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

LINGER = MIB
"""Bytes of a request that are taken and thrown away after its answer: who still sends reads the answer first."""

TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def bounded(limits: Limits) -> type[H11Protocol]:
    """Return the protocol of connections that keep the limits."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    arriving = (h11.IDLE, h11.SEND_BODY)

    class Bounded(H11Protocol):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.access_log = False
            self._arrival: asyncio.TimerHandle | None = None
            self._departure: asyncio.TimerHandle | None = None
            self._thrown_away: int | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            if len(self.connections) >= limits.connections:
                self.transport = transport
                transport.abort()
                return
            super().connection_made(transport)
            transport.set_write_buffer_limits(high=0)  # so that pause_writing tells of every byte that is not taken
            transport.max_size = limits.header  # type: ignore[attr-defined]  # asyncio's: what is parsed at a stretch
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            _cancel(self._arrival)
            _cancel(self._departure)
            if self in self.connections:
                super().connection_lost(exc)
                self._unset_keepalive_if_required()  # uvicorn does so only where there was no error

        def data_received(self, data: bytes) -> None:
            if self._thrown_away is not None:
                self._throw_away(data)
                return
            super().data_received(data)
            self._watch()

        def on_response_complete(self) -> None:
            is_unread = self.conn.their_state is h11.SEND_BODY
            super().on_response_complete()
            if is_unread:
                self._linger()
            elif self.conn.their_state is h11.SEND_BODY:  # of the next request, which waited behind this one
                self._watch()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._departure = self.loop.call_later(limits.seconds, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            _cancel(self._departure)

        def send_400_response(self, msg: str) -> None:
            try:
                super().send_400_response(msg)
            except h11.LocalProtocolError:  # rubbish behind a request that is being answered
                self.transport.abort()

        def shutdown(self) -> None:
            if self.conn.their_state in arriving:
                self.transport.abort()
            else:
                super().shutdown()

        def _watch(self) -> None:
            """Keep one clock from the first byte of a request, or the connection, to its last byte."""
            if self.conn.their_state not in arriving:
                _cancel(self._arrival)
                self._arrival = None
            elif self._arrival is None:
                self._arrival = self.loop.call_later(limits.seconds, self._cut)

        def _linger(self) -> None:
            """Close a connection on which an answered request still comes in: not at once, which loses the answer.

            What comes is not parsed any more: chunks of a byte each take the time of the training.
            """
            if self.transport.is_closing():
                return
            self._unset_keepalive_if_required()
            _cancel(self._arrival)
            self._arrival = self.loop.call_later(limits.keep_alive, self.transport.abort)
            self._thrown_away = 0
            self.transport.write_eof()

        def _throw_away(self, data: bytes) -> None:
            self._thrown_away = (self._thrown_away or 0) + len(data)
            if self._thrown_away > LINGER:
                self.transport.abort()

        def _cut(self) -> None:
            """Close a connection whose request does not come to its end."""
            if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
                self.transport.write(TOO_SLOW)
            self.transport.close()

    return Bounded


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
