"""The socket that a service listens at."""

from __future__ import annotations

import socket

from onion.errors import OnionError

BACKLOG = 128  # connections that the system queues until the server is up


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket: a client that connects from now on is answered."""
    listening = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        # The protocol is named so that asyncio recognizes TCP and disables Nagle's algorithm (40 ms a call).
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        if listening is not None:
            listening.close()
        raise OnionError(
            f"The service cannot listen at {host}, port {port}: {error.strerror}. Choose another port; 0 takes any."
        ) from None
    return listening


def address_of(listening: socket.socket) -> str:
    """Return the address of a service, such as ``http://127.0.0.1:8765``."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
