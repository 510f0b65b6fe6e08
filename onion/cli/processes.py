"""A command in several processes of this machine that make up one training.

Paddle's launcher, which is for several machines (docs/distributed/machines.md), ends the others three seconds after
one has failed, kills ranks that need more than 30 seconds to save, leaves them running where it is killed itself, and
gives them one thread each; here they finish their batch, save and leave, and share the processors.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from types import FrameType
from typing import BinaryIO

from onion.host import launch

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HOST = "127.0.0.1"
PATIENCE = 60.0
"""Seconds for the others to end by themselves after one has failed."""

POLL = 0.05
"""Seconds after which processes are polled again."""


def run_in_processes(count: int, arguments: Sequence[str], logs: Path) -> int:
    """Run ``onion ARGUMENTS`` in several processes; return the exit status of the first one that fails, or 0.

    Rank 0 has this process's output; what the others print goes to ``rank-N.log``. A signal to this process is passed
    on to all: as to a single one, the first ends the batch, saves and leaves, and the second leaves at once. Where this
    process is killed, they end as after SIGTERM.

    Args:
        count: of the processes.
        arguments: of the command.
        logs: the folder of the logs, created if it does not exist.
    """
    logs.mkdir(parents=True, exist_ok=True)
    with started(count, [sys.executable, "-m", "onion", *arguments], logs) as ranks, _passed_on(ranks):
        return status_of(ranks)


@contextmanager
def started(
    count: int,
    command: Sequence[str],
    logs: Path,
    environment: Mapping[str, str] = os.environ,
    first: BinaryIO | None = None,
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start a command in several processes as Paddle's launcher does; in the end, kill those that are left.

    Each is in a session of its own, which Ctrl-C does not reach, and holds the end of a pipe by which it notices that
    this process is gone (``onion.host.launch.end_with_launcher``).

    Args:
        count: of the processes.
        command: what each of them runs.
        logs: the folder for ``rank-N.log``, from rank 1 on.
        environment: of the processes, to which that of the launcher is added.
        first: where rank 0 prints. Default: where this process does.
    """
    ports = _free_ports(count + 1)
    ranks: list[subprocess.Popen[bytes]] = []
    with ExitStack() as files:
        theirs, ours = os.pipe()  # Python's descriptors are not inherited, but for those in pass_fds
        files.callback(os.close, ours)
        try:
            for rank in range(count):
                log = files.enter_context((logs / f"rank-{rank}.log").open("wb")) if rank else first
                told = {**_told(rank, count, ports), launch.LAUNCHER: str(theirs)}
                ranks.append(
                    subprocess.Popen(  # noqa: S603  the command is the user's own
                        command,
                        env={**environment, **told},
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                        pass_fds=[theirs],
                    )
                )
            os.close(theirs)
            yield ranks
        finally:
            for each in ranks:
                if each.poll() is None:
                    each.kill()
                each.wait()


def status_of(ranks: Sequence[subprocess.Popen[bytes]], patience: float = PATIENCE) -> int:
    """Wait for all processes; return the status of the first one that failed, as a shell tells it, or 0.

    Args:
        ranks: the processes.
        patience: seconds for the others after one has failed; then they are killed.
    """
    status, end = 0, float("inf")
    while left := [each for each in ranks if each.poll() is None]:
        failed = [each.returncode for each in ranks if each.returncode]
        if failed and not status:
            status, end = failed[0], monotonic() + patience
        if monotonic() > end:
            for each in left:
                each.kill()
        sleep(POLL)
    status = status or next((each.returncode for each in ranks if each.returncode), 0)
    return status if status >= 0 else 128 - status


@contextmanager
def _passed_on(ranks: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Pass signals on to all processes."""

    def forward(number: int, frame: FrameType | None) -> None:
        for rank in ranks:
            rank.send_signal(number)

    before: dict[signal.Signals, Callable[..., object] | int | None] = {
        number: signal.signal(number, forward) for number in FORWARDED
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _told(rank: int, count: int, ports: Sequence[int]) -> dict[str, str]:
    """Return what Paddle's launcher would put into the environment of a process."""
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
    return {name: str(value) for name, value in told.items()}


def _free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
