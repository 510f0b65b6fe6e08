"""Our side of a piece: ``python -m benchmarks.results.onion_side JOB.json`` trains, measures and writes the answer."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from onion.device import paddle, use_threads

if TYPE_CHECKING:
    from paddle import nn

NAMES = {"lr": "learning_rate", "warmup": "warmup_ratio", "clip": "max_grad_norm"}
"""Settings of a row -> of ``fine_tune``; kept results are found by the names of the row."""

NEVER = 10**9
"""Steps between two tests: the last checkpoint is the only one, and nothing is chosen by the dev file."""


def answer(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Train in a folder, and measure what the last step left there; the seconds end with that step."""
    from onion import GradientMachine
    from onion.tasks.finetune import inference
    from onion.tasks.finetune.fine_tune import fine_tune
    from onion.tasks.finetune.settings import Settings

    begun = perf_counter()
    dev = job["dev"]
    given = {NAMES.get(name, name): value for name, value in job.items()}
    given = {field.name: given[field.name] for field in attrs.fields(Settings) if field.name in given}
    runner = fine_tune(**given | {"dev": next(iter(dev.values())), "test_every": NEVER}, output=folder)
    if "head" in job:  # whose it is; else ours draws its own
        begin_with(runner[GradientMachine].network.classifier, Path(job["head_file"]))
    state = runner.run(passes=job["passes"])
    seconds = round(perf_counter() - begun, 1)
    found = {title: inference.evaluate(folder, path) for title, path in dev.items()}
    return {
        "figures": {title: {name: figures[name] for name in job["figures"]} for title, figures in found.items()},
        "seconds": seconds,
        "steps": state.step,
        "versions": {"paddlepaddle": paddle().__version__},
    }


def begin_with(head: nn.Linear, path: Path) -> None:
    """Give a head the weights that hugging_face.py has written."""
    from onion.items.gradient_machine import load_network

    with np.load(path) as arrays:
        load_network(head, dict(arrays))


def main(path: str) -> None:
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    use_threads(job["threads"])
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
        found = answer(job, Path(folder, "run"))
    Path(job["answer"]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
