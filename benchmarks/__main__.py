"""``make bench``: run every benchmark, or those that are named, and write benchmarks/results.md of all that was found.

    python -m benchmarks [NAME ...]

Each runs as ``python -m benchmarks.NAME --keep``; one that fails is reported, and the others are run all the same (exit
status 1). A benchmark that was not run keeps the section that it has.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.frame import ROOT
from benchmarks.frame.section import MEASURED, read
from onion.checkpointing.atomic_files import replace_file

NAMES = (
    "loop",
    "finetune",
    "finetune-avx2",
    "pretraining",
    "inference",
    "inference-avx2",
    "serving",
    "layers",
    "data",
    "saving",
    "resuming",
    "corpus",
    "memory",
    "growth",
    "distributed",
    "channel",
)
"""Of the sections; one with ``-avx2`` is that of the benchmark before it with ``--avx2``."""

AFTER = {"serving": ("serving-avx2",)}
"""Sections that come after another one, and that no command makes here: they are from another processor."""

PAGE = ROOT / "benchmarks" / "results.md"
HEAD = """\
# Measured beside its peers

Made by `make bench`; not edited by hand. Sides that are compared take turns in one go, round after round, on the same
work, and each comparison checks that they computed the same before it tells a time. Medians and quartiles are over the
rounds; a ratio is taken within each round. What is meant by each figure stands in docs/performance.md.
"""


def page(folder: Path = MEASURED) -> str:
    kept = [folder / f"{each}.json" for name in NAMES for each in (name, *AFTER.get(name, ()))]
    return "\n".join([HEAD, *(read(path).markdown() for path in kept if path.is_file())])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    names = parser.parse_args(arguments).names
    unknown = set(names) - set(NAMES)
    if unknown:
        parser.error(f"there is no benchmark {sorted(unknown)[0]!r}; there are {', '.join(NAMES)}")
    failed = 0
    for name in names or NAMES:
        print(f"== {name}", flush=True)
        module, *limit = name.split("-")
        options = [*(f"--{each}" for each in limit), "--keep"]
        failed += subprocess.run([sys.executable, "-m", f"benchmarks.{module}", *options], cwd=ROOT).returncode != 0
        replace_file(PAGE, page().encode())
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
