"""Give broken data files to every command that reads such files; ``make spoil`` runs it.

    python -m scripts.spoil --count 300 --seed 6

A good file of a task is spoilt in a way that is drawn with the seed (changes.py): cut, in another encoding, with bits
flipped, other columns or values, deeply nested brackets, or a pipe, a folder, a device in its place. It is used for
training, whole and as a stream, for testing, evaluation, prediction, as a file and on standard input, and for
embedding. The commands are called in this process, every ``--apart``-th as a process of its own.

Every command has to end with status 0, or with status 2 and one message: no traceback, no control characters, no
endless line. Nothing may be half-written, neither the output nor the kept features, and existing files stay. Faults are
reported when they are found, and at the end in one line of JSON; then the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when Paddle is loaded: so small a network gains nothing by more

from scripts.console import parser_of
from scripts.spoil import trial
from scripts.spoil.changes import spoilt_files
from scripts.spoil.files import TASKS


def run() -> int:
    asked = _asked()
    with tempfile.TemporaryDirectory() as name:
        os.environ["ONION_HOME"] = f"{name}/home"
        folder = Path(name, "ground")
        folder.mkdir()
        told = spoil(trial.lay(folder), asked.count, asked.seed, asked.apart, asked.limit)
    print(json.dumps(told, ensure_ascii=False))
    return 1 if told["faults"] else 0


def spoil(ground: trial.Ground, count: int, seed: int, apart: int, limit: int) -> dict[str, Any]:
    """Give ``count`` spoilt files to the commands, one of ``apart`` commands in its own process; return the outcome."""
    begun, ended, ways, faults = time.monotonic(), Counter[str](), Counter[str](), []
    for task in TASKS:
        words = ground.training(task, ground.good(task), ground.good(task), ground.run(task))
        if (done := trial.run_here(trial.Command("train", words, ground.run(task)), limit)).status != 0:
            raise RuntimeError(f"cannot train {task} on a good file: {done.said}{done.broken}")
    before, number = trial.kept_features(ground.features), 0
    rooms = ground.folder / "spoilt"
    rooms.mkdir()
    for place, spoilt in enumerate(islice(spoilt_files(rooms, seed), count)):
        ways[spoilt.way] += 1
        for command in trial.commands_for(spoilt, ground):
            number += 1
            status, wrong = _tried(command, ground, before, number % apart == 0, limit)
            ended[f"{command.name} {status}"] += 1
            for each in wrong:
                faults.append(f"file {place} ({spoilt.task}, {spoilt.way}), {command.name}: {each}")
                print(faults[-1], file=sys.stderr, flush=True)
    seconds = round(time.monotonic() - begun, 1)
    told = {"seed": seed, "files": count, "commands": number, "apart": number // apart, "seconds": seconds}
    return {**told, "ended": dict(sorted(ended.items())), "ways": dict(sorted(ways.items())), "faults": faults}


def _tried(
    command: trial.Command, ground: trial.Ground, before: trial.Kept, apart: bool, limit: int
) -> tuple[int | None, list[str]]:
    ended = trial.run_apart(command, limit) if apart else trial.run_here(command, limit)
    wrong = list(trial.faults_of_end(ended, apart))
    if ended.status is not None:
        wrong += trial.faults_of_output(command.output, ended.status)
    wrong += trial.faults_of_features(ground.features, before)
    trial.remove(command.output)
    return ended.status, wrong


def _asked() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--count", type=int, default=300, help="files")
    parser.add_argument("--apart", type=int, default=20, help="of so many commands one is a process of its own")
    parser.add_argument("--limit", type=int, default=600, help="seconds after which a command hangs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run())
