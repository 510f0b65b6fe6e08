"""What ``make parity`` asks of a reference; run in its environment, at the top of the repository.

The words behind ``python -m scripts.reference_outputs``:

    encoders REFERENCE OUT SEED       live models, their layouts and outputs: OUT/ARCHITECTURE/
    read-back REFERENCE FOLDER SEED   outputs of FOLDER/ARCHITECTURE/LAYOUT/, which onion saved
    minilm FOLDER TEXTS OUT           TEXTS: a JSON list; OUT: .npz
    sentences FOLDER TEXTS OUT
    fine-tuning FOLDER JOB OUT        JOB: JSON, see texts.fine_tune
    ids REFERENCE TASKS               TASKS: a JSON list of files and how to read them; see :func:`ids`
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from scripts.reference_outputs.architectures import CASES, live, read_back, write


def encoders(reference: str, out: str, seed: str) -> None:
    """Write every architecture in every layout that the reference has."""
    by = importlib.import_module(f"scripts.reference_outputs.by_{reference}")
    for name, case in CASES.items():
        case = live(case, int(seed))
        write(by, case, Path(out) / name, by.layouts(case))


def read_backs(reference: str, folder: str, seed: str) -> None:
    """Load whatever is in the folder."""
    by = importlib.import_module(f"scripts.reference_outputs.by_{reference}")
    for name, case in CASES.items():
        for layout in sorted((Path(folder) / name).iterdir()):
            read_back(by, live(case, int(seed)), layout)


def compute(function: str, folder: str, asked: str, out: str) -> None:
    """Apply a function of texts.py to the encoder of a folder."""
    from scripts.reference_outputs import texts

    np.savez(out, **getattr(texts, function)(folder, json.loads(Path(asked).read_text(encoding="utf-8"))))


def ids(reference: str, tasks: str) -> None:
    """Tokenize lines: each task is {vocabulary: folder, lower, lines: a JSON list's file, out: file}."""
    from scripts.reference_outputs import texts

    encode = {"transformers": texts.transformers_ids, "paddlenlp": texts.paddlenlp_ids}[reference]
    for task in json.loads(Path(tasks).read_text(encoding="utf-8")):
        lines = json.loads(Path(task["lines"]).read_text(encoding="utf-8"))
        maker, found = encode(Path(task["vocabulary"]), task["lower"], lines)
        Path(task["out"]).write_text(json.dumps({"maker": maker, "ids": found}))


JOBS: dict[str, Callable[..., None]] = {
    "encoders": encoders,
    "read-back": read_backs,
    "minilm": partial(compute, "minilm"),
    "sentences": partial(compute, "mean_vectors"),
    "fine-tuning": partial(compute, "fine_tune"),
    "ids": ids,
}

if __name__ == "__main__":
    JOBS[sys.argv[1]](*sys.argv[2:])
