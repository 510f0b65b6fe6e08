"""Kill a random rank of a training at a random moment, start again with another number of processes, compare the bits.

python -m scripts.kill_ranks [--kills 100] [--seed 1]

Each run begins in a fresh folder with 2 or 4 processes. It is killed by SIGKILL up to three times, at any moment
(saving and loading included), and started again with 1, 2 or 4 processes until it ends; runs are made until there were
so many kills. It fails if a rank wrote nothing, or other weights, figures or counts than those of a run that nobody
killed. Prints a table; the exit status is 1 if any run differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

ROOT = Path(__file__).parents[1]
JOB = ROOT / "tests" / "distributed" / "job.py"
PASSES, MOST, PATIENCE = 6, 3, 600


def started(out: Path, processes: int, saves: Path) -> subprocess.Popen[bytes]:
    """Start the training in a new process group."""
    out.mkdir()
    words = [str(JOB), json.dumps({"out": str(out), "saves": str(saves), "passes": PASSES})]
    launch = ["-m", "paddle.distributed.launch", "--nproc_per_node", str(processes), "--log_dir", str(out / "logs")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with (out / "launcher.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, *(launch if processes > 1 else []), *words],
            cwd=out,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def ranks_of(process: subprocess.Popen[bytes], processes: int) -> list[int]:
    """Return the process ids of the ranks that are there."""
    if processes == 1:
        return [process.pid]
    listed = subprocess.run(
        ["pgrep", "-P", str(process.pid), "-f", JOB.name], capture_output=True, text=True, check=False
    )
    return [int(word) for word in listed.stdout.split()]


def results(out: Path, processes: int) -> list[dict[str, Any] | None]:
    """Return what each rank wrote, without its number."""
    files = [out / f"rank-{rank}.json" for rank in range(processes)]
    found = [json.loads(file.read_text()) if file.exists() else None for file in files]
    return [None if each is None else {**each, "rank": 0} for each in found]


def killed_and_resumed(
    folder: Path, chance: random.Random, seconds: float
) -> tuple[list[str], int, list[dict[str, Any] | None]]:
    """Run a training to its end through kills.

    Returns:
        The kills (processes:rank), how many processes ended it (0: it did not end), and what each of them wrote.
    """
    done: list[str] = []
    for attempt in range(MOST + 1):
        processes = chance.choice([2, 4] if attempt == 0 else [1, 2, 4])
        out = folder / f"start-{attempt}"
        process = started(out, processes, folder / "saves")
        try:
            if attempt < MOST:
                try:
                    process.wait(chance.uniform(0.1, 0.9) * seconds)
                except subprocess.TimeoutExpired:
                    if ranks := ranks_of(process, processes):
                        victim = chance.randrange(len(ranks))
                        os.kill(sorted(ranks)[victim], signal.SIGKILL)
                        done.append(f"{processes}:{victim}")
            process.wait(PATIENCE)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        found = results(out, processes)
        if process.returncode == 0:
            return done, processes, found
    return done, 0, []


def main() -> int:
    """Do the runs; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    room = Path(tempfile.mkdtemp())
    try:
        begun = monotonic()
        whole = started(room / "whole", 2, room / "saves")
        if whole.wait(PATIENCE):
            print((room / "whole" / "launcher.log").read_text())
            return 1
        seconds = monotonic() - begun
        wanted = results(room / "whole", 2)[0]
        print("run | killed (processes:rank) | ended with | same bits", flush=True)
        bad = kills = number = 0
        while kills < options.kills:
            folder = room / str(number)
            folder.mkdir()
            chance = random.Random(f"{options.seed} {number}")
            done, processes, found = killed_and_resumed(folder, chance, seconds)
            same = bool(found) and all(each == wanted for each in found)
            print(f"{number} | {' '.join(done) or '-'} | {processes} | {'yes' if same else f'NO: {found}'}", flush=True)
            if same:
                shutil.rmtree(folder)
            number, kills, bad = number + 1, kills + len(done), bad + (not same)
        print(f"{kills} kills in {number} runs, of which {number - bad} came to the same bits")
        return 1 if bad else 0
    finally:
        if not any(room.glob("*/start-*")):
            shutil.rmtree(room, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
