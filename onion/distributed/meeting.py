"""How the ranks of a training find each other: each connects to rank 0, before Paddle's own engine is started.

Paddle waits for an absent process without a limit that could be set, and does not say which one it is (3.3.1: a rank
whose rank 0 never comes tries again every three seconds, for longer than ten minutes). Here whoever is missing is
named after ``timeout`` seconds, and whoever ends meanwhile is no matter: the launcher ends the others.
"""

from __future__ import annotations

import json
import socket
from hashlib import sha256
from multiprocessing.connection import Connection, wait
from time import monotonic, sleep

from onion.errors import RankError
from onion.host import launch

AGAIN = 0.1
"""Seconds between two tries to reach rank 0, which may be starting still."""


def meet(timeout: float) -> dict[int, Connection]:
    """Connect all ranks to rank 0, at the address that the launcher has chosen for it.

    Args:
        timeout: seconds to wait for the slowest.

    Returns:
        Rank 0: the connection to each other rank; other ranks: that to rank 0.

    Raises:
        RankError: a rank has not come in time; it is named.
    """
    rank, end = launch.rank(), monotonic() + timeout
    return _received(end, timeout) if rank == 0 else {0: _introduced(rank, end, timeout)}


def _received(end: float, timeout: float) -> dict[int, Connection]:
    """Wait for all others; who connects and is none of them is sent away."""
    missing, found, pending = set(range(1, launch.world_size())), dict[int, Connection](), list[Connection]()
    host, port = launch.first()
    try:
        server = socket.create_server((host, port), backlog=max(128, launch.world_size()))
    except OSError as error:
        raise RankError(
            f"rank 0 cannot listen at {host}:{port}, where the launcher told the others to find it: {error}. Start "
            "the training again; a launcher chooses another port."
        ) from error
    with server:
        while missing:
            ready = wait([server, *pending], max(0.0, end - monotonic()))
            if not ready:
                ranks = ", ".join(map(str, sorted(missing)))
                raise RankError(
                    f"rank {ranks} did not come within {timeout:g} seconds of the start; its own log tells whether it "
                    f"was started, and whether it reaches rank 0 at {host}:{port}."
                )
            for each in ready:
                if each is server:
                    pending.append(Connection(server.accept()[0].detach()))
                    continue
                assert isinstance(each, Connection)
                pending.remove(each)
                rank = _rank_of(each)
                if rank in missing:
                    missing.remove(rank)
                    found[rank] = each
                else:
                    each.close()
    return dict(sorted(found.items()))


def _introduced(rank: int, end: float, timeout: float) -> Connection:
    """Connect to rank 0, which may be starting still."""
    host, port = launch.first()
    while True:
        try:
            connected = socket.create_connection((host, port), max(AGAIN, end - monotonic()))
        except OSError as error:
            if monotonic() < end:
                sleep(AGAIN)
                continue
            raise RankError(
                f"rank 0 was not reached at {host}:{port} within {timeout:g} seconds of the start ({error}); its own "
                "log tells whether it was started."
            ) from error
        connected.settimeout(None)
        connection = Connection(connected.detach())
        connection.send_bytes(_words(rank))
        return connection


def _rank_of(connection: Connection) -> int | None:
    """Return the rank that has introduced itself; None: it is a stranger, or gone already."""
    try:
        words = connection.recv_bytes(maxlength=1000)
    except (EOFError, OSError):
        return None
    return next((rank for rank in range(1, launch.world_size()) if words == _words(rank)), None)


def _words(rank: int) -> bytes:
    """Return how a rank of this training introduces itself; a process of another training has other addresses."""
    return json.dumps({"onion": sha256(launch.endpoints().encode()).hexdigest(), "rank": rank}).encode()
