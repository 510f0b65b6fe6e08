"""Run trainings in 1, 2, 4 and 8 processes, and compare all that they leave; ``make same-bits`` runs it.

    python -m scripts.same_bits ../shared/data/glue/mrpc

DATA is a folder with MRPC's train.tsv and dev.tsv. MiniLM learns an excerpt of it, with dropout, clipping, AdamW and
tests within the run, through ``fine_tune`` and ``distributed`` and through ``onion train``; the small trainings of
tests/distributed/trainings.py follow. All share batches of 8 pieces. One process runs without a launcher, the others
through Paddle's, each in a fresh folder. Compared with one process are: every checkpoint in all bits (weights,
optimizer, generators, counters, metrics), the log except for seconds, and what each rank has in memory at its end.
A rank that wrote nothing has failed. The plain sum follows, of which only the distance of the weights is told.

The exit status is 1 if any training with ``exact=True`` differs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from onion.checkpointing import checkpoint
from scripts.console import parser_of
from scripts.crash_test.differences import differences
from scripts.same_bits.mrpc import MAX_LENGTH, PIECES, SETTINGS, distance
from tests.distributed.catalogue import place
from tests.distributed.trainings import TRAININGS

ROOT = Path(__file__).parents[2]
CATALOGUE, MRPC = ROOT / "tests" / "distributed" / "catalogue.py", ROOT / "scripts" / "same_bits" / "mrpc.py"
TESTED = 100
PARTS = ("mrpc", "command", "small", "plain")
COMMAND = "mrpc by onion train"


def excerpt(data: Path, folder: Path, rows: int) -> Path:
    """Write the first rows of MRPC's files into a new folder; return it."""
    folder.mkdir()
    for name, count in {"train.tsv": rows, "dev.tsv": TESTED}.items():
        lines = (data / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / name).write_text("".join(lines[: count + 1]), encoding="utf-8")
    return folder


def command(data: Path, folder: Path) -> list[str]:
    """Return the words of ``onion train`` for the same training."""
    settings = {**SETTINGS, "pieces": PIECES, "max_length": MAX_LENGTH, "threads": 1, "output": folder}
    settings |= {"task": "classification", "train": data / "train.tsv", "dev": data / "dev.tsv"}
    words = [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return [str(Path(sys.executable).with_name("onion")), "train", *words]


def launched(out: Path, world: int, words: Sequence[str]) -> float:
    """Run a script in a new folder by so many processes; return how many seconds it took. Exit if it fails."""
    out.mkdir(parents=True)
    launcher = ["-m", "paddle.distributed.launch", "--nproc_per_node", str(world), "--log_dir", str(out / "logs"), "--"]
    begun = monotonic()
    done = subprocess.run(
        [sys.executable, *(launcher if world > 1 else []), *words],
        cwd=out,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{world} processes ended with status {done.returncode}\n{done.stdout[-5000:]}")
    return monotonic() - begun


def on_ranks(out: Path, world: int) -> list[dict[str, str]]:
    """Return what each rank wrote; exit if one wrote nothing."""
    files = [out / f"rank-{rank}.json" for rank in range(world)]
    if missing := [file.name for file in files if not file.exists()]:
        sys.exit(f"{', '.join(missing)} were not written, of {world} processes")
    return [json.loads(file.read_text()) for file in files]


def complaints(name: str, out: Path, world: int, alone: Path) -> list[str]:
    """Return in what a training differs from that of one process."""
    wanted = on_ranks(alone, 1)[0][name]
    ranks = [each[name] for each in on_ranks(out, world)]
    others = [f"rank {rank} has {found}, not {wanted}" for rank, found in enumerate(ranks) if found != wanted]
    return [*others, *differences(place(out, 0, name), place(alone, 0, name))]


def row(name: str, world: int, seconds: float, ended: str, told: str) -> None:
    """Print a row of the table."""
    steps, _, digest = ended.partition(" ")
    print(f"{name} | {world} | {steps} | {digest} | {seconds:.0f} | {told}", flush=True)


def exactly(names: Sequence[str], words: Sequence[str], worlds: Sequence[int], room: Path) -> int:
    """Run and compare trainings that one script runs; return how many differ."""
    bad = 0
    for world in worlds:
        seconds = launched(room / str(world), world, [words[0], str(room / str(world)), *words[1:]])
        for name in names:
            found = complaints(name, room / str(world), world, room / "1")
            row(name, world, seconds, on_ranks(room / str(world), world)[0][name], found[0] if found else "yes")
            bad += bool(found)
    return bad


def by_command(data: Path, worlds: Sequence[int], room: Path) -> int:
    """Run and compare ``onion train``; return how many differ."""
    bad = 0
    for world in worlds:
        folder = room / str(world) / "run"
        seconds = launched(room / str(world), world, command(data, folder))
        found = differences(folder, room / "1" / "run")
        step = checkpoint.steps_in(folder)[-1]
        sha = json.loads((folder / f"step-{step:08d}" / "manifest.json").read_text())["files"]
        machine = sha["gradient_machine.safetensors"]["sha256"]
        row(COMMAND, world, seconds, f"{step} {machine[:12]}", found[0] if found else "yes")
        bad += bool(found)
    return bad


def plainly(data: Path, worlds: Sequence[int], room: Path) -> None:
    """Run the plain sum, and tell how far the weights end from those of one process."""
    found = {}
    for world in worlds:
        out = room / str(world)
        seconds = launched(out, world, [str(MRPC), str(out), str(data), "plain"])
        saved = checkpoint.newest(place(out, 0, "mrpc"))
        assert saved is not None
        found[world] = saved.items["gradient_machine"]
        rank = on_ranks(out, world)[0]
        apart, moved = distance(found[world], found[worlds[0]]), float(rank["moved"])
        told = f"moved by {moved:.3g}, apart by {apart:.2g} ({apart / moved:.1e})"
        row("mrpc, plain sum", world, seconds, rank["mrpc"], told)


def main() -> int:
    """Do the runs; return the exit status."""
    parser = parser_of(__doc__, seed=False)
    parser.add_argument("data", metavar="DATA", type=Path, help="folder of MRPC")
    parser.add_argument("--worlds", type=int, nargs="+", default=[2, 4, 8], help="compared with 1 (default: 2 4 8)")
    parser.add_argument("--parts", choices=PARTS, nargs="+", default=PARTS, help="default: all")
    told = "examples of MRPC; 243 are fifteen batches of 16 and one of three, for eight pieces (default: %(default)s)"
    parser.add_argument("--rows", type=int, default=243, help=told)
    options = parser.parse_args()
    worlds = [1, *options.worlds]
    room = Path(tempfile.mkdtemp())
    try:
        data, bad = excerpt(options.data, room / "data", options.rows), 0
        print("training | processes | steps | digest | seconds | same bits", flush=True)
        if "mrpc" in options.parts:
            bad += exactly(["mrpc"], [str(MRPC), str(data), "exact"], worlds, room / "exact")
        if "command" in options.parts:
            bad += by_command(data, worlds, room / "command")
        if "small" in options.parts:
            bad += exactly([*TRAININGS], [str(CATALOGUE), str(PIECES), *TRAININGS], worlds, room / "small")
        if "plain" in options.parts:
            plainly(data, worlds, room / "plain")
        print(f"{bad} differ" if bad else "all came to the same bits")
        return 1 if bad else 0
    finally:
        shutil.rmtree(room, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
