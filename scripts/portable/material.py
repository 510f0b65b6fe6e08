"""The tiny encoders and files that an emulated process works with, made natively: there it would take its time.

``python -m scripts.portable.material FAMILY FOLDER`` writes them.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import attrs

from onion.tasks.registry import TASKS
from tests.models.helpers import VARIANTS, small_encoder
from tests.onions.material import OPTIONS, files
from tests.tasks.helpers import VOCAB

LENGTH = 16
SMALL = {
    "vocab_size": len(VOCAB),
    "hidden_size": 16,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": LENGTH,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}
FAMILIES = {"bert": VARIANTS["bert"], "ernie": VARIANTS["ernie 3.0"]}
SETTINGS = {"passes": 2, "batch_size": 4, "learning_rate": 3e-3, "test_every": 2}
"""Of every training: the first test is in the first pass, and there is another one after it."""


def prepare(family: str, folder: Path) -> None:
    """Write all that a journey needs: ``encoder``, and for each task ``TASK.json``, the settings of its training."""
    encoder = folder / "encoder"
    small_encoder(config=attrs.evolve(FAMILIES[family], **SMALL)).save_pretrained(encoder)
    (encoder / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
    for task in TASKS:
        copies = [shutil.copy(file, folder / f"{task}-{file.name}") for file in files(task)]
        told = {"task": task, "encoder": str(encoder), **dict(zip(("train", "dev"), map(str, copies), strict=True))}
        settings = {**SETTINGS, **told, **OPTIONS.get(task, {"max_length": LENGTH})}
        (folder / f"{task}.json").write_text(json.dumps(settings), encoding="utf-8")


if __name__ == "__main__":
    prepare(sys.argv[1], Path(sys.argv[2]))
