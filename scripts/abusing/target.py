"""The service as an attacker sees it."""

from __future__ import annotations

import json
import re
import select
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import attrs

PATIENCE, FRIENDLY = 0.5, 10.0
"""Seconds that an attacker waits for an answer, who often sends what is none yet; and that a friend does."""

STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


@attrs.frozen
class Target:
    """A service on this machine.

    Attributes:
        port: where it listens.
        token: the right one.
    """

    port: int
    token: str = attrs.field(repr=False)

    def connect(self, patience: float = PATIENCE) -> socket.socket:
        """Open a connection."""
        return socket.create_connection(("127.0.0.1", self.port), patience)

    def request(self, method: str, path: str, body: bytes = b"", *headers: str, token: str | None = None) -> bytes:
        """Return the bytes of a request that has a token: the right one, or another."""
        lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"authorization: Bearer {token or self.token}"]
        lines += [f"content-length: {len(body)}", "connection: close", *headers]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    def ask(self, request: bytes, patience: float = PATIENCE) -> tuple[str, bytes]:
        """Send bytes; return the status of the answer, or ``closed``, or ``silent``, and the body."""
        answer = b""
        try:
            with self.connect(patience) as connection:
                with suppress(OSError):  # a server may answer, and close, before it has heard all
                    connection.sendall(request)
                while chunk := connection.recv(65536):
                    answer += chunk
        except TimeoutError:
            return "silent", b""
        except OSError:
            pass
        found = STATUS.match(answer)
        return (found[1].decode(), answer.partition(b"\r\n\r\n")[2]) if found else ("closed", b"")

    def provoke(self, pieces: Iterable[bytes]) -> str:
        """Send pieces, as long as somebody listens; return the status of the answer as ``ask`` does.

        Args:
            pieces: of a request; there need not be a last one. An end is sent behind them, when an answer has begun
                to come or is not to be expected any more.
        """
        answer = b""
        try:
            with self.connect(FRIENDLY) as connection:
                with suppress(OSError):  # a server may answer, and close, before it has heard all
                    for piece in pieces:
                        connection.sendall(piece)
                        if _is_heard(connection, 0):
                            break
                    _is_heard(connection, PATIENCE)
                    connection.shutdown(socket.SHUT_WR)
                while chunk := connection.recv(65536):
                    answer += chunk
        except TimeoutError:
            return "silent"
        except OSError:
            pass
        found = STATUS.match(answer)
        return found[1].decode() if found else "closed"

    def call(self, method: str, path: str, value: Any = None, *headers: str) -> Any:
        """Call as a friend; return the JSON of the answer, or None if there is none, or it is a refusal."""
        body = b"" if value is None else json.dumps(value).encode()
        status, answer = self.ask(self.request(method, path, body, *headers), FRIENDLY)
        return json.loads(answer) if status == "200" else None


def _is_heard(connection: socket.socket, seconds: float) -> bool:
    """Tell whether an answer or an end has come."""
    return bool(select.select([connection], [], [], seconds)[0])
