"""A command in several processes of this machine that make up one training.

Paddle's launcher, which is for several machines (docs/distributed/machines.md), answers Ctrl-C by SIGTERM, kills ranks
that need more than 30 seconds to save, and gives them one thread each; here they take their time and share the cores.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import BinaryIO

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HOST = "127.0.0.1"
PATIENCE = 60
"""Seconds for the others to end by themselves after one has failed."""


def run_in_processes(count: int, arguments: Sequence[str], logs: Path) -> int:
    """Run ``onion ARGUMENTS`` in several processes; return the exit status of the first one that fails, or 0.

    Rank 0 has this process's output; what the others print goes to ``rank-N.log``. A signal to this process is passed
    on to all: as to a single one, the first ends the batch, saves and leaves, and the second leaves at once.

    Args:
        count: of the processes.
        arguments: of the command.
        logs: the folder of the logs, created if it does not exist.
    """
    logs.mkdir(parents=True, exist_ok=True)
    ports = _free_ports(count + 1)
    with ExitStack() as files:
        ranks: list[subprocess.Popen[bytes]] = []

        def forward(number: int, frame: FrameType | None) -> None:
            for rank in ranks:
                rank.send_signal(number)

        before = {number: signal.signal(number, forward) for number in FORWARDED}
        try:
            for rank in range(count):
                log = files.enter_context((logs / f"rank-{rank}.log").open("wb")) if rank else None
                ranks.append(_started(rank, count, ports, arguments, log))
            return _status(ranks)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _started(
    rank: int, count: int, ports: Sequence[int], arguments: Sequence[str], log: BinaryIO | None
) -> subprocess.Popen[bytes]:
    """Start a process as Paddle's launcher does, in a session of its own, which Ctrl-C does not reach."""
    endpoints = [f"{HOST}:{port}" for port in ports[1:]]
    told = {
        "PADDLE_MASTER": f"{HOST}:{ports[0]}",
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
        "PADDLE_TRAINER_ID": rank,
        "PADDLE_TRAINERS_NUM": count,
        "PADDLE_GLOBAL_RANK": rank,
        "PADDLE_GLOBAL_SIZE": count,
        "PADDLE_LOCAL_RANK": rank,
        "PADDLE_LOCAL_SIZE": count,
        "PADDLE_RANK_IN_NODE": rank,
        "PADDLE_NNODES": 1,
        "FLAGS_selected_gpus": rank,
    }
    return subprocess.Popen(  # noqa: S603  the command is the user's own
        [sys.executable, "-m", "onion", *arguments],
        env={**os.environ, **{name: str(value) for name, value in told.items()}},
        stdout=log,  # None: that of this process
        stderr=log,
        start_new_session=True,
    )


def _status(ranks: Sequence[subprocess.Popen[bytes]]) -> int:
    """Wait for all; return the first status that is not 0. Who does not end after another has failed is killed."""
    status = 0
    for rank in ranks:
        try:
            found = rank.wait(PATIENCE if status else None)
        except subprocess.TimeoutExpired:
            rank.kill()
            found = rank.wait()
        status = status or found
    return status if status >= 0 else 128 - status


def _free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
