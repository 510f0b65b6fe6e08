"""Kill random ranks of a training at chosen moments, go on with other numbers of processes, compare the bits.

python -m scripts.kill_ranks [--kills 100] [--etcd 10] [--seed 1]

Each run begins in a fresh folder with 2 or 4 processes. A rank of it is killed up to three times: at any moment, while
it starts, while ranks join and load, or while a checkpoint is written; it is started again with 1, 2 or 4 processes
until it ends. Runs are made until there were so many SIGKILLs; SIGTERM, SIGABRT and SIGSEGV are mixed in and not
counted. Then come runs under elastic launchers and an etcd of their own (elastic.py), which start the ranks again by
themselves, until there were so many kills.

A run fails if a rank wrote nothing, or other weights, figures or counts than those of a run that nobody killed, if the
last checkpoint differs in any bit, or if processes are left 300 seconds after a kill. Prints a table and sums; the exit
status is 1 if any run failed.
"""

from __future__ import annotations

import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from scripts.console import parser_of
from scripts.kill_ranks import elastic
from scripts.kill_ranks.run import Run, killed
from scripts.kill_ranks.training import Training


def main() -> int:
    """Do the runs; return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("--kills", type=int, default=100, help="SIGKILLs of ranks, started again by hand")
    parser.add_argument("--etcd", type=int, default=0, help="kills under elastic launchers; needs etcd")
    asked = parser.parse_args()
    if asked.etcd and (why := elastic.missing()):
        print(why, file=sys.stderr)
        return 2
    room = Path(tempfile.mkdtemp(prefix="kill-ranks-"))
    whole, seconds = whole_run(room)
    print(f"seed {asked.seed}; a run that nobody kills takes {seconds:.0f} seconds")
    print("run | hit (processes:rank@moment) | processes at the end | same bits", flush=True)
    bad = _runs(room / "launched", whole, asked.kills, asked.seed, lambda run, chance: killed(run, chance, seconds))
    if asked.etcd:
        with elastic.etcd(room / "etcd") as address:
            bad += _runs(
                room / "elastic",
                whole,
                asked.etcd,
                asked.seed,
                lambda run, chance: elastic.killed(run, chance, seconds, address),
            )
    if not bad:
        shutil.rmtree(room)
    return 1 if bad else 0


def whole_run(room: Path) -> tuple[Run, float]:
    """Return a run that nobody kills, and the seconds that it took."""
    whole, begun = Run(room / "whole"), monotonic()
    training = Training(whole.folder / "start", whole.saves, 2)
    if not training.wait() or training.launchers[0].returncode:
        training.end()
        raise SystemExit(training.printed())
    whole.written = training.written()
    return whole, monotonic() - begun


def _runs(room: Path, whole: Run, kills: int, seed: int, through_kills: Callable[[Run, random.Random], None]) -> int:
    """Make runs until there were so many kills, and print each; return how many failed."""
    runs: list[Run] = []
    bad = 0
    while sum(hit.sent == signal.SIGKILL for run in runs for hit in run.hits) < kills:
        number = len(runs)
        run = Run(room / str(number))
        try:
            through_kills(run, random.Random(f"{seed} {number}"))
            complaints = run.complaints(whole)
        except TimeoutError as error:
            complaints = [str(error)]
        told = "NO: " + "; ".join(complaints) if complaints else "yes"
        print(f"{number} | {', '.join(map(str, run.hits)) or '-'} | {len(run.written)} | {told}", flush=True)
        runs, bad = [*runs, run], bad + bool(complaints)
        if not complaints:
            shutil.rmtree(run.folder)
    hits = [hit for run in runs for hit in run.hits]
    print(f"{len(runs)} runs, of which {len(runs) - bad} came to the same bits, through {len(hits)} signals")
    for words in (Counter(hit.sent.name for hit in hits), Counter(hit.where.split("@")[1] for hit in hits)):
        print("; ".join(f"{word} {count}" for word, count in sorted(words.items())))
    if hits:
        slowest = max(hits, key=lambda hit: hit.seconds)
        print(f"longest from a hit to the end of all ranks: {slowest.seconds:.1f} seconds ({slowest})", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
