"""Our side of a piece: ``python -m benchmarks.results.by_onion JOB.json`` trains, measures and writes the answer."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import attrs

from onion.device import paddle, use_threads

NEVER = 10**9
"""Steps between two tests: the last checkpoint is the only one, and nothing is chosen by the dev file."""


def answer(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Train in a folder, and measure what the last step left there."""
    from onion.tasks.jobs import inference, training
    from onion.tasks.jobs.settings import Settings

    dev = job["dev"]
    given = {field.name: job[field.name] for field in attrs.fields(Settings) if field.name in job}
    settings = Settings(**given | {"dev": next(iter(dev.values())), "test_every": NEVER})
    trained = training.train(settings, folder)
    if trained.signal is not None:
        sys.exit(128 + trained.signal)
    found = {title: inference.evaluate(folder, path) for title, path in dev.items()}
    return {
        "figures": {title: {name: figures[name] for name in job["figures"]} for title, figures in found.items()},
        "seconds": trained.report["seconds"],
        "steps": trained.report["step"],
        "versions": {"paddlepaddle": paddle().__version__},
    }


def main(path: str) -> None:
    """Do a job."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    use_threads(job["threads"])
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
        found = answer(job, Path(folder, "run"))
    Path(job["answer"]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
