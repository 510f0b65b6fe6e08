"""Demonstrate a run that learns from arriving data under control: a producer, a trainer and a client on this machine.

    python -m scripts.online.steered --samples 20000

The client pauses the run, lets it make steps, changes a learning rate, saves, kills the trainer by SIGKILL and starts
it again, stops it and starts it again. In the end each sample has to be in the weights exactly once, each command has
to be in the journal exactly once, and a replay from the samples and the journal has to be bit-identical. Prints a line
of JSON; the exit status is 1 if one of the three does not hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from scripts.console import parser_of
from scripts.online.exactly_once import counts_in
from scripts.online.processes import ROOT, Child, free_port, python, until
from scripts.online.producer import HELD

RATE = "parameter_updater.learning_rate"


def main() -> int:
    """Run the demonstration; return the exit status."""
    parser = parser_of(__doc__, seed=False)
    parser.add_argument("--samples", type=int, default=20_000)
    samples: int = parser.parse_args().samples
    with tempfile.TemporaryDirectory() as name, ExitStack() as ends:
        folder, port = Path(name), free_port()
        (folder / HELD).touch()  # holds back the last samples, so that a slow client does not find the run ended
        producer = python("scripts.online.producer", "spool", folder, samples, 0.15, 7)
        ends.callback(producer.end)
        trainer = python("scripts.online.trainer", "spool", folder, samples, port)
        ends.callback(trainer.end)
        _steer(Client(f"http://127.0.0.1:{port}"), trainer)
        (folder / HELD).unlink()
        _say("waiting until all samples have been learned")
        until(lambda: trainer.over and producer.over)
        told = _proof(folder, samples, trainer.kills)
    print(json.dumps(told))
    return 0 if told["exactly_once"] and told["commands_once"] and told["same_when_done_again"] else 1


class Client:
    """``onion ctl``, as called on the command line."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, *words: str) -> dict[str, Any]:
        """Send a command; return the answer, or raise SystemExit if it is refused."""
        done = _onion(["ctl", *words, "--url", self._url])
        if done.returncode:
            raise SystemExit(f"onion ctl {' '.join(words)}: {done.stderr}")
        answer: dict[str, Any] = json.loads(done.stdout)
        if "command" in answer:
            _say(f"onion ctl {' '.join(words)}: after step {answer['step']}")
        return answer

    def there(self) -> bool:
        """Return whether the run makes steps."""
        done = _onion(["ctl", "status", "--url", self._url])
        return done.returncode == 0 and json.loads(done.stdout)["step"] > 0


def _steer(ctl: Client, trainer: Child) -> None:
    until(ctl.there)
    ctl("pause")
    ctl("step", "3")
    ctl("set", f"{RATE}=0.002")
    ctl("save")
    ctl("resume")
    _say("kill -9")
    trainer.kill()
    until(ctl.there)
    kept = ctl("status")["settings"][RATE]["value"]
    _say(f"started again; the learning rate is {kept:g}")
    if kept != 0.002:
        raise SystemExit(f"the learning rate was set to 0.002 before the kill, and is {kept} after it")
    ctl("set", f"{RATE}=0.004")
    ctl("stop", "--yes")
    until(lambda: trainer.over)
    _say("stopped; started again")
    trainer.start()


def _proof(folder: Path, samples: int, kills: int) -> dict[str, Any]:
    counts = counts_in(folder / "run")
    rows = [json.loads(line) for line in (folder / "run" / "journal.jsonl").read_text().splitlines()]
    commands = [(row["number"], row["command"]) for row in rows if "number" in row]
    expected = ["pause", "step", "set", "save", "resume", "set", "stop"]
    done = _onion(
        ["replay", str(folder / "run"), "--onion", "scripts.online.trainer:again", "--output", str(folder / "again")],
        {"PLACE": str(folder), "SAMPLES": str(samples)},
    )
    again = json.loads(done.stdout) if done.returncode in (0, 1) else {"same": False, "differs": [done.stderr]}
    return {
        "samples": samples,
        "exactly_once": bool(counts.keys() == {1.0} and counts[1.0] == samples),
        "commands_once": commands == list(enumerate(expected, 1)),
        "same_when_done_again": again["same"],
        "differs": again["differs"],
        "short_batches": sum("samples" in row for row in rows),
        "kills": kills,
    }


def _onion(words: list[str], environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from onion.cli import main; sys.exit(main())", *words]
    there = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    return subprocess.run(command, env=there, capture_output=True, text=True, check=False)


def _say(words: str) -> None:
    print(words, flush=True)


if __name__ == "__main__":
    sys.exit(main())
