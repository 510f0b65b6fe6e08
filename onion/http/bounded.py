"""uvicorn with bounds: limits, in time and number, where its own protocol and server have none."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from onion.http.limits import MIB, ConnectionLimits

LINGER_BYTES = MIB
"""Bytes read and discarded after the response to a request, so that a client that is still sending can read it."""

TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

END_OF_HEAD, CLOSE = b"\r\n\r\n", b"connection: close"

ARRIVING = (h11.IDLE, h11.SEND_BODY)

BACKLOG = 128  # connections that the system queues

ACCEPTED_AT_ONCE = 16
"""Connections taken from the backlog in one turn of the event loop; at most that many exceed the limit at a time."""

CLOSE_SECONDS = 5  # time for responses under way when the service stops


def bounded_server(
    app: Any, limits: ConnectionLimits, closing: asyncio.Event, close_seconds: int = CLOSE_SECONDS
) -> ClosingServer:
    """Return a server that enforces the limits and sets ``closing`` when it stops.

    Args:
        app: The ASGI application.
        limits: Of connections and requests.
        closing: Set when the server stops.
        close_seconds: For responses under way when it stops.
    """
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=partial(BoundedProtocol, limits),  # type: ignore[arg-type]  # it is called and nothing else
        ws="none",
        lifespan="off",
        log_config=None,
        proxy_headers=False,
        server_header=False,
        backlog=ACCEPTED_AT_ONCE,
        limit_concurrency=limits.connections + 1,  # of calls; those of clients that have disconnected count too
        timeout_keep_alive=limits.keep_alive,  # type: ignore[arg-type]  # given to loop.call_later, which takes floats
        timeout_graceful_shutdown=close_seconds,
        h11_max_incomplete_event_size=limits.header,
    )
    return ClosingServer(config, closing)


class ClosingServer(uvicorn.Server):
    """A server that keeps no client waiting when it stops, and leaves no connection open."""

    def __init__(self, config: uvicorn.Config, closing: asyncio.Event) -> None:
        super().__init__(config)
        self._closing = closing
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen with the whole backlog: uvicorn uses one number for it and for what is accepted at once."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections."""
        self._closing.set()
        await super().shutdown(sockets)
        self._abort()
        await asyncio.sleep(0)  # which closes them

    def cut(self) -> None:
        """Stop without waiting for responses; may be called from another thread and by a signal handler."""
        self.should_exit = self.force_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._abort)  # since Python 3.12 uvicorn waits for open connections

    def _abort(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


class TellingConnection(h11.Connection):
    """Tells a client whose request is still arriving that the connection ends with the response.

    h11 itself does not, since the rest of the request may come in time; but then the client would send its next request
    to a connection that is being closed. It is told in the bytes alone: if h11 knew, uvicorn would close at once.
    """

    def send(self, event: Any) -> Any:
        """Return the bytes of an event."""
        written = super().send(event)
        if not isinstance(event, h11.Response) or self.their_state is not h11.SEND_BODY:
            return written
        head, end, rest = written.partition(END_OF_HEAD)
        return written if CLOSE in head.lower() else head + b"\r\n" + CLOSE + end + rest


class BoundedProtocol(H11Protocol):
    """One connection. uvicorn limits neither the time of a request or of a reader, nor the number of connections."""

    def __init__(self, limits: ConnectionLimits, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False
        self.conn = TellingConnection(h11.SERVER, limits.header)
        self._limits = limits
        self._arrival: asyncio.TimerHandle | None = None
        self._departure: asyncio.TimerHandle | None = None
        self._discarded: int | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or close it if there are too many."""
        if len(self.connections) >= self._limits.connections:
            self.transport = transport
            transport.abort()
            return
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that pause_writing is called for every byte that is not read
        transport.max_size = self._limits.header  # type: ignore[attr-defined]  # asyncio's: bytes parsed at a time
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        _cancel(self._arrival)
        _cancel(self._departure)
        if self in self.connections:
            super().connection_lost(exc)
            self._unset_keepalive_if_required()  # uvicorn does so only where there was no error

    def data_received(self, data: bytes) -> None:
        """Parse the data, or discard them."""
        if self._discarded is not None:
            self._discard(data)
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Discard the rest of an answered request; watch the next request."""
        is_unread = self.conn.their_state is h11.SEND_BODY
        super().on_response_complete()
        if is_unread:
            self._linger()
        elif self.conn.their_state is h11.SEND_BODY:  # of the next request, which waited behind this one
            self._watch()

    def pause_writing(self) -> None:
        """Close a connection whose client does not read."""
        super().pause_writing()
        self._departure = self.loop.call_later(self._limits.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop that timer."""
        super().resume_writing()
        _cancel(self._departure)

    def send_400_response(self, msg: str) -> None:
        """Answer with 400, or close the connection if a response is under way."""
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # garbage behind a request that is being answered
            self.transport.abort()

    def shutdown(self) -> None:
        """Close a connection whose request is incomplete, once what was answered before has been sent."""
        if self.conn.their_state in ARRIVING:
            self.transport.close()
        else:
            super().shutdown()

    def _watch(self) -> None:
        """Run one timer from the start of the connection or the first byte of a request to the request's last byte."""
        if self.conn.their_state not in ARRIVING:
            _cancel(self._arrival)
            self._arrival = None
        elif self._arrival is None:
            self._arrival = self.loop.call_later(self._limits.seconds, self._cut)

    def _linger(self) -> None:
        """Close a connection on which an answered request still arrives, but not at once, which loses the response.

        What arrives is no longer parsed: chunks of one byte each would take processor time from the training.
        """
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        _cancel(self._arrival)
        self._arrival = self.loop.call_later(self._limits.keep_alive, self.transport.abort)
        self._discarded = 0
        self.transport.write_eof()

    def _discard(self, data: bytes) -> None:
        self._discarded = (self._discarded or 0) + len(data)
        if self._discarded > LINGER_BYTES:
            self.transport.abort()

    def _cut(self) -> None:
        """Close a connection whose request did not arrive in time."""
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            self.transport.write(TOO_SLOW)
        self.transport.close()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
