"""A process that trains: ``python -m streaming.trainer KIND FOLDER SAMPLES [PORT]``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from onion import Runner
from onion.online import ControlServer
from streaming.counting import counting
from streaming.places import PLACES


def main(kind: str, folder: str, samples: str, port: str | None = None) -> None:
    """Train until all samples are there."""
    control = None if port is None else ControlServer(port=int(port))
    source = PLACES[kind](Path(folder)).source()
    counting(source, Path(folder, "run"), int(samples), control).run()


def again(folder: Path) -> Runner:
    """Return the onion of a spool that is named in the environment, for ``onion replay``."""
    source = PLACES["spool"](Path(os.environ["PLACE"])).source()
    return counting(source, folder, int(os.environ["SAMPLES"]), ControlServer(port=None))


if __name__ == "__main__":
    main(*sys.argv[1:])
