"""Put each trouble on each rank of a training by 2 and by 4 processes; print what came of it on all ranks.

python -m scripts.trouble_ranks [--processes 2 4] [--troubles kill halt-in-a-collective]

No launcher ends the others here: whoever would wait for ever is found out. A row is right if all ranks go on with the
same weights, or leave after the same step with a checkpoint of it, or leave with an error that names the rank in
trouble, as ``tests/distributed/troubles.py`` says, and if no process and no shared memory is left. A rank that is
halted (SIGSTOP) is woken when the others have left, and has to leave too. The exit status is 1 if a row is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from onion.checkpointing import checkpoint
from onion.cli.processes import started
from tests.distributed.troubles import NAMED, ON, OUTCOMES, RAISED, SAVED

ROOT = Path(__file__).parents[1]
JOB = ROOT / "tests" / "distributed" / "job.py"
SHARED = Path("/dev/shm")
SECONDS, PATIENCE, LIMIT = 5, 20, 240
"""For a rank that is late; for a rank that is to come at the start; for a whole row."""

STEPS = {
    "terminate between passes": 5,
    "other order": 3,
    "kill in a save": 5,
    "accumulate more": 1,
    "kill in a test": 4,
}
"""When the trouble begins; others: at step 7."""

FIRST_ONLY = ("full disk", "kill in a save")
"""Only rank 0 writes."""


def row(folder: Path, trouble: str, processes: int, rank: int) -> tuple[str, bool]:
    """Run a training with a trouble on a rank; return the row of the table, and whether it is right."""
    saves = folder / "saves"
    told = {"out": str(folder), "trouble": trouble, "rank": rank, "saves": str(saves), "step": STEPS.get(trouble, 7)}
    told |= {"patience": SECONDS, "timeout": PATIENCE}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    shared = {*SHARED.iterdir()}
    command = [sys.executable, str(JOB), json.dumps(told)]
    with (folder / "rank-0.log").open("wb") as log, started(processes, command, folder, environment, log) as ranks:
        others = [each for number, each in enumerate(ranks) if number != rank]
        hung = not _ended(others, LIMIT)
        seconds = time.time() - _begun(folder)
        if trouble.startswith("halt"):
            ranks[rank].send_signal(signal.SIGCONT)
        hung = hung or not _ended([ranks[rank]], LIMIT)
        left = [number for number, each in enumerate(ranks) if _session(each.pid) - {each.pid}]
    found = [_read(folder / f"rank-{number}.json") for number in range(processes)]
    memory = [name for name in {*SHARED.iterdir()} - shared if any(str(each.pid) in name.name for each in ranks)]
    halted = trouble.startswith("halt")  # it may finish the step when it is woken, before it hears of the others
    judged = [each for number, each in enumerate(found) if each is not None and not (halted and number == rank)]
    steps = sorted({each["step"] for each in judged})
    kind = OUTCOMES[trouble]
    same_step = len(steps) == 1 or trouble == "absent"
    named = all(f"rank {rank}" in (each or {}).get("error", "") for i, each in enumerate(found) if i != rank)
    right = not (hung or left or memory) and same_step
    if kind == ON:
        right = right and len({(each or {}).get("weights", number) for number, each in enumerate(found)}) == 1
    elif kind == SAVED:
        newest = checkpoint.newest(saves)
        right = right and newest is not None and [newest.step] == steps
    elif kind == NAMED:
        right = right and named
    elif kind == RAISED:
        right = right and len({(each or {}).get("error", number) for number, each in enumerate(found)}) == 1
    words = [trouble, processes, rank, ", ".join(map(str, steps)) or "-", f"{seconds:.1f}"]
    if kind == NAMED:
        words.append("yes" if named else "NO")
    else:
        words.append("-")
    words.append("yes" if right else f"NO: hung {hung}, left {left}, shared memory {memory}, {found}")
    return " | ".join(map(str, words)), right


def _ended(ranks: list[subprocess.Popen[bytes]], seconds: float) -> bool:
    """Wait for processes; return whether all have ended."""
    end = time.monotonic() + seconds
    while any(each.poll() is None for each in ranks):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _begun(folder: Path) -> float:
    """Return when the trouble began; of troubles in the data, when the run did."""
    mark = folder / "trouble"
    return (mark if mark.exists() else folder / "rank-0.log").stat().st_mtime


def _session(leader: int) -> set[int]:
    """Return the processes of a session that are there."""
    listed = subprocess.run(["pgrep", "-s", str(leader)], capture_output=True, text=True, check=False)
    return {int(word) for word in listed.stdout.split()}


def _read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text()) if path.exists() else None


def main() -> int:
    """Print the table; return the exit status."""
    names = {trouble.replace(" ", "-"): trouble for trouble in OUTCOMES}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--troubles", nargs="*", default=[*names], choices=[*names])
    options = parser.parse_args()
    print("trouble | processes | rank | steps reached | seconds until the others had left | named by all | right")
    wrong = number = 0
    with tempfile.TemporaryDirectory() as room:
        for trouble in (names[each] for each in options.troubles):
            for processes in options.processes:
                for rank in (0,) if trouble in FIRST_ONLY else range(processes):
                    folder = Path(room) / str(number)
                    folder.mkdir()
                    words, right = row(folder, trouble, processes, rank)
                    print(words, flush=True)
                    number, wrong = number + 1, wrong + (not right)
    print(f"{number - wrong} of {number} are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
