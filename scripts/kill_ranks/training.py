"""A training by several processes, as Paddle's launcher starts them: its ranks, and what they wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

ROOT = Path(__file__).parents[2]
JOB = ROOT / "tests" / "distributed" / "job.py"
PASSES = 6
PATIENCE = 300
"""Seconds in which all processes have to end by themselves."""

MARK = "ONION_KILL_RANKS"
"""The environment variable by which the processes of a training are found, also those whose launcher is gone."""


class Training:
    """The processes that run tests/distributed/job.py together.

    Args:
        out: a new folder, for what the ranks write and print.
        saves: the folder of checkpoints.
        processes: how many a machine runs. One on one machine is started without a launcher.
        machines: how many launchers there are.
        launch: arguments of the launchers.
    """

    def __init__(self, out: Path, saves: Path, processes: int, machines: int = 1, launch: Sequence[str] = ()) -> None:
        out.mkdir(parents=True)
        self.out, self.saves, self.processes = out, saves, processes
        self.launched = machines > 1 or processes > 1 or bool(launch)
        self._words = [str(JOB), json.dumps({"out": str(out), "saves": str(saves), "passes": PASSES})]
        self._launch = launch
        self.launchers: dict[int, subprocess.Popen[bytes]] = {}
        for _ in range(machines):
            self.add_machine()

    def add_machine(self) -> None:
        """Start a launcher, in a process group of its own."""
        number = len(list(self.out.glob("launcher-*.log")))
        words = ["--nproc_per_node", str(self.processes), "--log_dir", str(self.out / f"logs-{number}"), *self._launch]
        launch = ["-m", "paddle.distributed.launch", *words] if self.launched else []
        with (self.out / f"launcher-{number}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *launch, *self._words],
                cwd=self.out,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), MARK: f"{self.out}:{number}"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.launchers[number] = process

    def ranks(self, machine: int | None = None) -> dict[int, int]:
        """Return the process of each rank that is there, of one machine or of all: rank -> process id."""
        if not self.launched:
            return {} if self.over() else {0: self.launchers[0].pid}
        marks = {f"{self.out}:{number}" for number in ([*self.launchers] if machine is None else [machine])}
        found = {}
        for each in Path("/proc").iterdir():
            told = _environment(each) if each.name.isdecimal() else {}
            if told.get(MARK) in marks and "PADDLE_TRAINER_ID" in told:
                found[int(told["PADDLE_TRAINER_ID"])] = int(each.name)
        return dict(sorted(found.items()))

    def is_there(self, process: int) -> bool:
        """Return whether a process of the training has not ended yet."""
        return _environment(Path(f"/proc/{process}")).get(MARK, "").startswith(f"{self.out}:")

    def printed(self) -> str:
        """Return what all ranks have printed so far."""
        return "".join(log.read_text(errors="replace") for log in self.out.glob("logs-*/workerlog.*"))

    def over(self) -> bool:
        """Return whether all launchers have ended."""
        return all(each.poll() is not None for each in self.launchers.values())

    def wait(self, seconds: float = PATIENCE) -> bool:
        """Wait for the end of all processes; return whether it has come in time."""
        end = monotonic() + seconds
        while not (over := self.over() and not self.ranks()) and monotonic() < end:
            sleep(0.02)
        return over

    def kill_machine(self, machine: int) -> bool:
        """Kill a launcher and its ranks, as the failure of a machine does; return False if it had ended before."""
        launcher, ranks = self.launchers[machine], self.ranks(machine)
        if launcher.poll() is not None:
            return False
        os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait()
        self._kill(ranks)
        del self.launchers[machine]
        return True

    def end(self) -> None:
        """Leave no process behind."""
        for each in self.launchers.values():
            if each.poll() is None:
                os.killpg(each.pid, signal.SIGKILL)
                each.wait()
        self._kill(self.ranks())

    @staticmethod
    def _kill(ranks: dict[int, int]) -> None:
        for process in ranks.values():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def written(self) -> dict[int, dict[str, Any]]:
        """Return what each rank that came to its end wrote, but for its number."""
        found = [json.loads(file.read_text()) for file in sorted(self.out.glob("rank-*.json"))]
        return {each["rank"]: {**each, "rank": 0} for each in found}

    def forget(self) -> None:
        """Remove what ranks have written, which others are going to start again."""
        for file in self.out.glob("rank-*.json"):
            file.unlink()


def _environment(process: Path) -> dict[str, str]:
    """Return the environment of a process (its folder in /proc); nothing if it is gone, or another user's."""
    try:
        words = (process / "environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(word.split("=", 1) for word in words if "=" in word)
