"""The trainings: a piece of a data set and an encoder, written so that every side reads the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from benchmarks.common.sides import Side, Visitor
from benchmarks.finetune.work import Job
from benchmarks.inference import models
from onion.models.config import EncoderConfig
from onion.models.formats.config_readers import CONFIG_FILE
from onion.models.tokenization.basic_tokenizer import is_symbol
from onion.models.weights import read_weights, write_weights

BATCH = 32
FEW = 5
"""Batches on which all sides have to have the same losses."""

RECIPE = {"batch_size": BATCH, "lr": 5e-5, "weight_decay": 0.01, "clip": 1.0, "seed": 1}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@dataclass(frozen=True)
class Part:
    """A training.

    Attributes:
        title: as tables tell it.
        file: its training file, within the folder of data sets.
        model: makes a job of ``benchmarks.inference``: ``folder``, ``head``, ``max_length``.
        steps: that it takes if nobody says otherwise.
        side: how its sides are there: all the time, or for a round.
    """

    title: str
    file: str
    model: Callable[[Path, Path], Job]
    steps: int
    side: type[Side] | type[Visitor] = Side

    def job(self, room: Path, data: Path, steps: int) -> Job:
        """Write what the sides read, and return what they are told of it."""
        found = self.model(room, data)
        source = Path(found["folder"])
        return {
            **RECIPE,
            "folder": str(source),
            "still": str(_changed(source, room / "still", NO_DROPOUT)),
            "paddlenlp": str(_for_paddlenlp(source, room / "paddlenlp", {})),
            "paddlenlp still": str(_for_paddlenlp(source, room / "paddlenlp-still", NO_DROPOUT)),
            "head": found["head"],
            "max_length": found["max_length"],
            "train": str(head_of(data / self.file, steps * BATCH, room / "train.tsv")),
            "few": str(head_of(data / self.file, FEW * BATCH, room / "few.tsv")),
        }


PARTS = {
    "sst-2": Part("SST-2", "glue/sst-2/train.tsv", models.minilm, 8),
    "mrpc": Part("MRPC", "glue/mrpc/train.tsv", models.minilm, 8),
    "chnsenticorp": Part("ChnSentiCorp", "chnsenticorp/train.tsv", models.base, 2, Visitor),
}
"""By name; each side of the last takes some 7 GiB of memory."""


def head_of(file: Path, rows: int, to: Path) -> Path:
    """Write what stands above a table and its first rows that all tokenizers cut in the same way; return where.

    Raises:
        ValueError: the table has fewer.
    """
    with file.open(encoding="utf-8", newline="\n") as lines:
        found = [line.removesuffix("\n") for line in (next(lines), *islice(filter(_cut_alike, lines), rows))]
    if len(found) <= rows:
        raise ValueError(f"{file} has fewer than {rows} rows; ask for fewer steps")
    to.write_bytes("".join(f"{line}\n" for line in found).encode())
    return to


def _cut_alike(line: str) -> bool:
    """Tell whether a line has no symbol beyond ASCII: PaddleNLP sets them apart for BERT, the others do not."""
    return not any(is_symbol(each) and not each.isascii() for each in line)


def _changed(source: Path, folder: Path, changes: dict[str, float]) -> Path:
    """Copy a model with other settings."""
    shutil.copytree(source, folder, ignore=lambda at, names: [name for name in names if Path(at, name).is_dir()])
    config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    (folder / CONFIG_FILE).write_text(json.dumps(config | changes), encoding="utf-8")
    return folder


def _for_paddlenlp(source: Path, folder: Path, changes: dict[str, float]) -> Path:
    """Write a model in the layout of PaddleNLP's BERT, with the words as its tokenizer reads them."""
    config = EncoderConfig.read(source).changed(**changes)
    write_weights(folder, read_weights(source).arrays, "paddlenlp", "bert.", config)
    config.write(folder)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in _words(source)), encoding="utf-8")
    return folder


def _words(source: Path) -> list[str]:
    """Return the vocabulary of a model in its order."""
    ids = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    return sorted(ids, key=ids.__getitem__)
