"""A side: the ranks that Paddle's launcher has started for it, which take part in a round when they are asked to."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.frame import ROOT
from benchmarks.frame.processes import end_of
from benchmarks.frame.worker import Answer

LIBRARIES = ("paddlepaddle",)
RANKS = ROOT / "benchmarks" / "distributed" / "ranks.py"
SECONDS = 1.0
"""Between two looks at whether the launcher still runs, while its ranks are awaited."""


def prepare(job: dict[str, Any]) -> Callable[..., Answer]:
    """Start the ranks of a side; return what lets them train once.

    Args:
        job: ``processes``, ``threads`` of each, ``folder`` for logs, and what a rank takes (ranks.py).
    """
    folder = Path(job["folder"])
    folder.mkdir(parents=True)
    address = str(folder / "side")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen(job["processes"])
        server.settimeout(SECONDS)
        launcher = _launched(job, folder, address)
        ranks = [_connected(server, launcher, folder) for _ in range(job["processes"])]
    for rank in ranks:
        rank.send(job)
    _answers(ranks, folder)  # when they are ready

    def work(**asked: Any) -> Answer:
        for rank in ranks:
            rank.send(asked)
        return {"ranks": sorted(_answers(ranks, folder), key=lambda answer: answer["rank"])}

    return work


def _launched(job: dict[str, Any], folder: Path, address: str) -> subprocess.Popen[bytes]:
    launcher = ["-m", "paddle.distributed.launch", "--nproc_per_node", str(job["processes"]), "--log_dir", str(folder)]
    with (folder / "launcher").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, *launcher, str(RANKS), address],
            env={**os.environ, "OMP_NUM_THREADS": str(job["threads"]), "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
        )


def _connected(server: socket.socket, launcher: subprocess.Popen[bytes], folder: Path) -> Connection:
    """Return the connection to the rank that comes next."""
    while True:
        try:
            return Connection(server.accept()[0].detach())
        except TimeoutError:
            if launcher.poll() is not None:
                raise SystemExit(_logs(folder)) from None


def _answers(ranks: list[Connection], folder: Path) -> list[Answer]:
    try:
        return [rank.recv() for rank in ranks]
    except EOFError:
        raise SystemExit(_logs(folder)) from None


def _logs(folder: Path) -> str:
    return "\n".join(end_of(path) for path in (folder / "launcher", *sorted(folder.glob("workerlog.*"))))
