"""What ``make parity`` asks of a reference; run in its environment, with scripts/ as the working folder.

python -m references encoders REFERENCE OUT SEED       live models, their layouts and outputs: OUT/ARCHITECTURE/
python -m references read-back REFERENCE FOLDER SEED   outputs of FOLDER/ARCHITECTURE/LAYOUT/, which onion saved
python -m references minilm FOLDER TEXTS OUT           TEXTS: a JSON list; OUT: .npz
python -m references sentences FOLDER TEXTS OUT
python -m references fine-tuning FOLDER JOB OUT        JOB: JSON, see references/fine_tuning.py
python -m references ids REFERENCE TASKS               TASKS: a JSON list of files and how to read them; see :func:`ids`
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np

from references.architectures import CASES, live
from references.folders import read_back, write


def encoders(reference: str, out: str, seed: str) -> None:
    """Write every architecture in every layout that the reference has."""
    by = importlib.import_module(f"references.by_{reference}")
    for name, case in CASES.items():
        case = live(case, int(seed))
        write(by, case, Path(out) / name, by.layouts(case))


def read_backs(reference: str, folder: str, seed: str) -> None:
    """Load whatever stands in the folder."""
    by = importlib.import_module(f"references.by_{reference}")
    for name, case in CASES.items():
        for layout in sorted((Path(folder) / name).iterdir()):
            read_back(by, live(case, int(seed)), layout)


def minilm(folder: str, texts: str, out: str) -> None:
    """BERT of transformers on texts."""
    from references.texts import minilm

    np.savez(out, **minilm(folder, json.loads(Path(texts).read_text(encoding="utf-8"))))


def sentences(folder: str, texts: str, out: str) -> None:
    """Run sentence-transformers on texts."""
    from references.by_sentences import MAKER, mean_vectors

    means, normalized = mean_vectors(folder, json.loads(Path(texts).read_text(encoding="utf-8")))
    np.savez(out, means=means, normalized=normalized, maker=np.array(MAKER))


def fine_tuning(folder: str, job: str, out: str) -> None:
    """Fine-tune the encoder of a folder by transformers."""
    from references.fine_tuning import fine_tune

    np.savez(out, **fine_tune(folder, json.loads(Path(job).read_text(encoding="utf-8"))))


def ids(reference: str, tasks: str) -> None:
    """Tokenize lines: each task is {vocabulary: folder, lower, lines: a JSON list's file, out: file}."""
    from references import texts

    encode = {"transformers": texts.transformers_ids, "paddlenlp": texts.paddlenlp_ids}[reference]
    for task in json.loads(Path(tasks).read_text(encoding="utf-8")):
        lines = json.loads(Path(task["lines"]).read_text(encoding="utf-8"))
        maker, found = encode(Path(task["vocabulary"]), task["lower"], lines)
        Path(task["out"]).write_text(json.dumps({"maker": maker, "ids": found}))


JOBS = {
    "encoders": encoders,
    "read-back": read_backs,
    "minilm": minilm,
    "sentences": sentences,
    "fine-tuning": fine_tuning,
    "ids": ids,
}

if __name__ == "__main__":
    JOBS[sys.argv[1]](*sys.argv[2:])
