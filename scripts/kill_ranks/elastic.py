"""Runs under Paddle's elastic launchers, which start ranks again by themselves; they meet in an etcd."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import sleep
from urllib.error import URLError
from urllib.request import urlopen

from scripts.kill_ranks.moments import fail_machine, hit
from scripts.kill_ranks.run import MOST, Run
from scripts.kill_ranks.training import Training
from scripts.online.processes import free_port

RESTARTS = "--max_restart 20 --elastic_level 1 --elastic_timeout 10"


def missing() -> str | None:
    """Return what these runs need and is not installed, with how to install it; None: they can be made."""
    if shutil.which("etcd") is None:
        return "etcd is not installed; on Debian and Ubuntu: apt-get install etcd-server"
    if find_spec("etcd3") is None:
        return "Paddle's launcher needs the package etcd3: pip install etcd3"
    return None


@contextmanager
def etcd(folder: Path) -> Iterator[str]:
    """Run an etcd in a new folder, on ports that are free; give its address."""
    folder.mkdir()
    own, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    words = ["etcd", "--data-dir", str(folder / "data"), "--listen-client-urls", own, "--advertise-client-urls", own]
    words += ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*words, "--initial-cluster", f"default={peers}"], stdout=log, stderr=log)
    try:
        while not _is_healthy(own):
            if process.poll() is not None:
                raise RuntimeError(f"etcd ended:\n{(folder / 'log').read_text()}")
            sleep(0.05)
        yield own.removeprefix("http://")
    finally:
        process.kill()
        process.wait()


def _is_healthy(address: str) -> bool:
    try:
        with urlopen(f"{address}/health") as answer:
            return b"true" in answer.read()
    except URLError:
        return False


def killed(run: Run, chance: random.Random, seconds: float, address: str) -> None:
    """Run a training to its end through kills.

    One launcher has 2 or 4 ranks, or two have 1 or 2 each. A rank is killed, or one of two launchers with its ranks;
    then the other goes on alone, until perhaps a third one joins it.

    Args:
        run: is changed.
        chance: draws.
        seconds: that a whole training takes.
        address: of etcd.
    """
    os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"  # see docs/distributed/elastic.md
    machines = chance.choice([1, 2])
    launch = ["--master", f"etcd://{address}", "--job_id", f"run-{run.folder.name}", *RESTARTS.split()]
    launch += ["--nnodes", "1:2"] if machines == 2 else []
    training = Training(run.folder / "start", run.saves, chance.choice([2, 4]) // machines, machines, launch)
    try:
        for _ in range(MOST):
            if len(training.launchers) == 2 and chance.random() < 0.5:
                found = fail_machine(training, chance, seconds)
                if chance.random() < 0.5:
                    training.add_machine()
            else:
                found = hit(training, chance, seconds)
            if found is not None:
                run.hits.append(found)
                training.forget()
        # Of two whose ranks fail at the same moment one may give up (docs/distributed/elastic.md); the other goes on.
        if training.wait() and any(each.returncode == 0 for each in training.launchers.values()):
            run.written = training.written()
    finally:
        training.end()
