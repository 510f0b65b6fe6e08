"""What the commands need besides a spoilt file: an encoder, and for each task a good file and a model trained on it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import attrs

from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.hub import home
from onion.tasks.finetune.fine_tune import seed_everything
from spoiling.tables import TASKS, VOCABULARY, endings, good_records, written

LENGTH = 24
"""Tokens that an example may have."""

SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
READING = ("--set", "max_query_length=8", "--set", "doc_stride=6", "--set", "max_answer_length=4")
QUICK = ("--quiet", "--passes", "1", "--batch-size", "16", "--max-length", str(LENGTH), "--threads", "1")


@attrs.frozen
class Ground:
    """A folder that holds all that spoilt files do not.

    Attributes:
        folder: the folder.
    """

    folder: Path

    @property
    def encoder(self) -> Path:
        """A tiny encoder."""
        return self.folder / "encoder"

    def good(self, task: str) -> Path:
        """Return a good file of a task."""
        return self.folder / f"{task}{endings(task)[0]}"

    def run(self, task: str) -> Path:
        """Return the folder of a model that was trained on the good file."""
        return self.folder / f"run-{task}"

    def training(self, task: str, train: Path, dev: Path, out: Path) -> list[str]:
        """Return the words of a short training."""
        words = ["train", "--task", task, "--train", str(train), "--dev", str(dev), "--out", str(out)]
        return [*words, "--encoder", str(self.encoder), *QUICK, *(READING if task == "read" else ())]

    @property
    def features(self) -> Path:
        """Where features are kept."""
        return home() / "features"


def lay(folder: Path) -> Ground:
    """Write the encoder and the good files; the models are trained by the command itself (:meth:`Ground.training`)."""
    ground = Ground(folder)
    config = EncoderConfig(
        vocab_size=len(VOCABULARY), max_position_embeddings=LENGTH, type_vocab_size=2, model_type="bert", **SIZES
    )
    seed_everything(1)
    Encoder(config).save_pretrained(ground.encoder)
    config.write(ground.encoder)
    (ground.encoder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    for task in TASKS:
        path = ground.good(task)
        path.write_bytes(written(good_records(task, Random(7)), path.suffix))  # noqa: S311  not for secrets
    return ground
