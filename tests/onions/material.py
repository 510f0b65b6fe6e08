"""Files for the onions of texts: a tiny encoder, and for each task a file to train on and one to test on."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, TypeVar
from unittest.mock import patch

from onion.checkpointing import rng
from onion.tasks.finetune.fine_tune import fine_tune
from tests.tasks import helpers
from tests.tasks.helpers import films, tiny_encoder, write_tsv
from tests.tasks.squad_files import TINY, squad
from tests.tasks.tagged import tagged

POSITIONS = 128
"""Of the encoders that the examples take, which are told to read texts of this length."""
PAIRS = ("text_a", "text_b", "label")
OPTIONS = {"question-answering": TINY}
Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")

KEPT: list[TemporaryDirectory[str]] = []
"""They are removed at the end of the process."""


def made_once(make: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
    """Let a function be called once in a process for the same arguments, and move no random generator."""

    @cache
    def made(*arguments: Any, **named: Any) -> Made:
        before = rng.capture()
        try:
            return make(*arguments, **named)
        finally:
            rng.restore(before)

    return made


@made_once
def encoder(layers: int = helpers.LAYERS, positions: int = helpers.POSITIONS) -> Path:
    """Write a tiny encoder."""
    with patch.object(helpers, "LAYERS", layers), patch.object(helpers, "POSITIONS", positions):
        return tiny_encoder(_folder())


def wide_encoder() -> Path:
    """Write one for longer texts."""
    return encoder(positions=POSITIONS)


def deep_encoder() -> Path:
    """Write one of 6 layers, for longer texts."""
    return encoder(6, POSITIONS)


@made_once
def teacher() -> Path:
    """Fine-tune the encoder of 6 layers for a moment; where several processes were launched, each does so alone."""
    folder, alone = _folder() / "teacher", {"PADDLE_TRAINERS_NUM": "1", "PADDLE_TRAINER_ID": "0"}
    given = {"encoder": str(deep_encoder()), "passes": 1}
    with patch.dict(os.environ, alone):
        fine_tune("classification", *files("classification"), folder, **given).run(passes=1)
    return folder


@made_once
def files(task: str, rows: int = 12) -> tuple[Path, Path]:
    """Write a file to train on, and one of 6 rows to test on."""
    folder, suffix = _folder(), "json" if task == "question-answering" else "tsv"
    return _written(task, folder / f"train.{suffix}", rows), _written(task, folder / f"dev.{suffix}", 6)


@made_once
def glue(rows: int = 12) -> Path:
    """Write folders as the examples want them: MRPC, RTE and STS-B, pairs of texts."""
    folder = _folder()
    for name, labels in {"mrpc": ("0", "1"), "rte": ("not_entailment", "entailment"), "sts-b": ("0.5", "4.5")}.items():
        (folder / name).mkdir()
        for file, count, seed in (("train.tsv", rows, 1), ("dev.tsv", 6, 2)):
            pairs = zip(films(count, seed), films(count, seed + 10), strict=True)
            judged = [(one, other, labels[first == second]) for (one, first), (other, second) in pairs]
            write_tsv(folder / name / file, judged, PAIRS)
    return folder


def sentences() -> Path:
    """Write a folder with the files of a classification, of more rows."""
    return files("classification", rows=130)[0].parent


def stsb() -> Path:
    """Write the folder of STS-B, of more rows."""
    return glue(rows=40) / "sts-b"


def _written(task: str, path: Path, count: int) -> Path:
    texts = films(count, seed=count)
    if task == "question-answering":
        return squad(path, *[(text, "was it", [(text.split()[0], 0)]) for text, _ in texts])
    if task == "token-classification":
        return write_tsv(path, tagged(count, seed=count))
    if task == "matching":
        return write_tsv(path, [(text, "a good film", str(int(label == "good"))) for text, label in texts], PAIRS)
    if task == "masked-lm":
        return write_tsv(path, [(text,) for text, _ in texts], ("text_a",))
    if task == "regression":
        return write_tsv(path, [(text, str(len(text) / 9)) for text, _ in texts])
    if task == "multilabel":
        texts = [(text, label if place % 3 else "good,bad") for place, (text, label) in enumerate(texts)]
    return write_tsv(path, texts)


def _folder() -> Path:
    KEPT.append(TemporaryDirectory())
    return Path(KEPT[-1].name)
