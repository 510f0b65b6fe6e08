"""The pieces of the study: corpora, pretrainings, fine-tunings, tests under masks. Each is one process."""

from __future__ import annotations

import json
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.composition import last_object
from benchmarks.frame.processes import FailedError, end_of, run_logged
from benchmarks.frame.study import Result, sum_of
from benchmarks.pretraining.study.arms import (
    ALONE,
    CHINESE,
    ENGLISH,
    FINE_TUNING,
    HELD_OUT,
    MASKS,
    PRETRAINING,
    SHAPE,
    WIKIPEDIA,
    Arm,
    Data,
)
from benchmarks.pretraining.study.texts import FILES, IN_ENGLISH, head_of, write_text
from benchmarks.results.__main__ import COMMON, ERNIE, VOCABULARY, encoder_folder
from onion.models.hub import EMBEDDED

LEAST_STEPS, SAVED = 20, 800
"""Steps of a trial, and steps between two checkpoints of a pretraining."""

SHIPPED = "wiki-zh"
"""The model that comes with onion."""


@dataclass(frozen=True)
class Place:
    """Where a piece reads and writes.

    ``own`` is the piece's folder, which stays when it is interrupted; log and settings stand beside ``named``, which is
    the same unless ``own`` is not among the runs; ``needs`` are the folders of those that it needs. ``threads`` is how
    many a piece computes with: it decides about the rounding of sums, and is no part of a result's name.
    """

    own: Path
    named: Path
    data: Path
    needs: Sequence[Path]
    scale: float
    threads: int

    def beside(self, ending: str) -> Path:
        """Return a file of the piece outside its folder."""
        return self.named.parent / f"{self.named.name}.{ending}"

    @property
    def log(self) -> Path:
        return self.beside("log")

    def run(self, title: object, module: str, *words: object) -> dict[str, Any]:
        """Run a module; return the last line of JSON that it printed, an empty one if there is none."""
        command = [sys.executable, "-m", module, *map(str, words)]
        run_logged(title, command, {"OMP_NUM_THREADS": str(self.threads)}, self.log)
        return last_object(self.log)


class Piece(ABC):
    """A piece of the study; its result is kept in a file.

    ``room`` is where its folder is if that is not for this study alone.
    """

    room: ClassVar[Path | None] = None

    @property
    @abstractmethod
    def stem(self) -> str:
        """The first part of the file's name."""

    @property
    def needs(self) -> Sequence[Piece]:
        """The pieces whose folders it reads."""
        return ()

    @property
    def files(self) -> Sequence[str]:
        """The files that it reads, below the folder of data."""
        return ()

    @abstractmethod
    def settings(self, scale: float) -> Any:
        """Return what decides about the result besides files and what it needs, as JSON values."""

    @abstractmethod
    def execute(self, place: Place) -> Result:
        """Run it; FailedError if it did not succeed. After an interruption it goes on where it can."""

    def __str__(self) -> str:
        return self.stem


@dataclass(frozen=True)
class CorpusPiece(Piece):
    """The build of a corpus."""

    name: str

    @property
    def stem(self) -> str:
        return f"corpus.{self.name}"

    @property
    def files(self) -> Sequence[str]:
        return FILES[self.name] if self.name in IN_ENGLISH else (*FILES[self.name], str(VOCABULARY / "vocab.txt"))

    def settings(self, scale: float) -> Any:
        return [list(ENGLISH if self.name in IN_ENGLISH else CHINESE), scale]

    def execute(self, place: Place) -> Result:
        text = place.beside("txt")
        write_text([place.data / name for name in FILES[self.name]], text, place.scale)
        words, _ = self.settings(place.scale)
        tokenizer = "minilm" if self.name in IN_ENGLISH else place.data / VOCABULARY
        told = ("--tokenizer", tokenizer, *words, "--output", place.own, "--quiet")
        report = place.run(self, "onion", "corpus", "build", text, *told)
        return {"report": {name: report[name] for name in ("tokens", "words", "sentences", "documents", "unknown")}}


@dataclass(frozen=True)
class PretrainingPiece(Piece):
    """A pretraining by ``onion pretrain``, which goes on from its last checkpoint."""

    arm: Arm

    @property
    def stem(self) -> str:
        return f"pretraining.{self.arm.name}"

    @property
    def needs(self) -> Sequence[Piece]:
        assert self.arm.corpus is not None
        shipped = (ShippedPiece(),) if self.arm.encoder == SHIPPED else ()
        return CorpusPiece(self.arm.corpus), CorpusPiece(self.arm.held_out), *shipped

    @property
    def files(self) -> Sequence[str]:
        return tuple(self.arm.files.values())

    def settings(self, scale: float) -> dict[str, Any]:
        found = {**PRETRAINING, **self.arm.options}
        steps = max(LEAST_STEPS, round(self.arm.tokens / found["tokens_per_batch"] * scale))
        saved = max(LEAST_STEPS // 4, round(SAVED * scale))
        return {**found, "max_steps": steps, "save_every": saved, **self._begins()}

    def _begins(self) -> dict[str, Any]:
        if self.arm.encoder is not None:
            return {"encoder": self.arm.encoder}
        dropout = {name: self.arm.dropout for name in SHAPE if name.endswith("dropout_prob")}
        return {"config": {**SHAPE, **dropout}}

    def execute(self, place: Place) -> Result:
        settings, given = self.settings(place.scale), place.beside("settings.json")
        corpus, held_out, *shipped = place.needs
        if shipped:
            settings["encoder"] = str(shipped[0])
        if "config" in settings:
            config = place.beside("config.json")
            config.write_text(json.dumps(settings["config"]), encoding="utf-8")
            settings["config"] = str(config)
        files = {name: str(place.data / path) for name, path in self.arm.files.items()}
        paths = {"corpus": str(corpus), "held_out": str(held_out), **files}
        given.write_text(json.dumps({**settings, **paths}), encoding="utf-8")
        report = place.run(self, "onion", "pretrain", "--settings", given, "--output", place.own, "--quiet")
        if not (place.own / "encoder").is_dir():
            raise FailedError(f"{self}: left no encoder; {end_of(place.log)}")
        return {
            "report": {**numbers(report), "tokens": settings["max_steps"] * settings["tokens_per_batch"]},
            "tests": tests(place.own),
        }


@dataclass(frozen=True)
class ShippedPiece(Piece):
    """The encoder of Wikipedia's text alone as it comes with onion."""

    room = EMBEDDED / SHIPPED

    @property
    def stem(self) -> str:
        return f"shipped.{SHIPPED}"

    @property
    def needs(self) -> Sequence[Piece]:
        return PretrainingPiece(ALONE), CorpusPiece(HELD_OUT), CorpusPiece(WIKIPEDIA)

    def settings(self, scale: float) -> Any:
        return "float16"

    def execute(self, place: Place) -> Result:
        pretrained, held_out, corpus = place.needs
        module = "benchmarks.pretraining.study.shipped"
        found = place.run(self, module, pretrained / "encoder", held_out, place.own)
        if "bytes" not in found:
            raise FailedError(f"{self}: no figures in the last line; {end_of(place.log)}")
        return {
            "report": found,
            "likeness": place.run(self, "benchmarks.pretraining.study.likeness", place.own, corpus),
        }


@dataclass(frozen=True)
class FineTuningPiece(Piece):
    """A fine-tuning with one seed, and the figure of its last step on the dev file; an interrupted one begins again."""

    arm: Arm
    data: Data
    seed: int

    @property
    def stem(self) -> str:
        return f"{self.data.name}.{self.arm.name}.{self.seed}"

    @property
    def needs(self) -> Sequence[Piece]:
        if self.arm.corpus is None:
            return ()
        return (ShippedPiece() if self.arm.shipped else PretrainingPiece(self.arm),)

    @property
    def files(self) -> Sequence[str]:
        return self.data.files

    def settings(self, scale: float) -> dict[str, Any]:
        own = {"task": self.data.task, "passes": self.data.passes, "figures": [self.data.figure]}
        return {**COMMON, **FINE_TUNING, **own, "scale": scale}

    def execute(self, place: Place) -> Result:
        place.own.mkdir(parents=True, exist_ok=True)
        train, dev = (place.data / name for name in self.files)
        if place.scale < 1:
            train, dev = (head_of(path, place.own / path.name, place.scale) for path in (train, dev))
        job, answer = place.own / "job.json", place.own / "answer.json"
        job_of = {
            **self.settings(place.scale),
            "train": str(train),
            "dev": {"dev": str(dev)},
            "encoder": str(self._encoder(place).absolute()),
            "seed": self.seed,
            "threads": place.threads,
            "answer": str(answer),
        }
        job.write_text(json.dumps(job_of), encoding="utf-8")
        answer.unlink(missing_ok=True)
        place.run(self, "benchmarks.results.onion_side", job)
        found = json.loads(answer.read_text(encoding="utf-8"))
        shutil.rmtree(place.own)
        return {
            "figure": found["figures"]["dev"][self.data.figure],
            "seconds": found["seconds"],
            "steps": found["steps"],
        }

    def _encoder(self, place: Place) -> Path:
        if place.needs:
            return place.needs[0] if self.arm.shipped else place.needs[0] / "encoder"
        return encoder_folder(ERNIE, place.data, place.own.parent / "encoders")


@dataclass(frozen=True)
class MasksPiece(Piece):
    """A pretrained model on held-out text under one kind of mask."""

    arm: Arm
    mask: str

    @property
    def stem(self) -> str:
        return f"masks.{self.arm.name}.{self.mask}"

    @property
    def needs(self) -> Sequence[Piece]:
        return PretrainingPiece(self.arm), CorpusPiece(HELD_OUT)

    def settings(self, scale: float) -> Any:
        return MASKS[self.mask]

    def execute(self, place: Place) -> Result:
        pretrained, held_out = place.needs
        module = "benchmarks.pretraining.study.under_masks"
        found = place.run(self, module, pretrained / "encoder", held_out, MASKS[self.mask])
        if "word_loss" not in found:
            raise FailedError(f"{self}: no figures in the last line; {end_of(place.log)}")
        return {"report": found}


def record(piece: Piece, data: Path, scale: float) -> Any:
    """Return all that decides about a result, as JSON values."""
    needs = [record(each, data, scale) for each in piece.needs]
    return [piece.settings(scale), [sum_of(data / name) for name in piece.files], needs]


def numbers(report: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, value in report.items() if isinstance(value, int | float)}


def tests(run: Path) -> list[dict[str, float]]:
    """Return the rows of a pretraining's log that tests have written, one a stage, with their figures by task."""
    rows = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        {name: value for name, value in row.items() if name in ("step", "stage") or name.endswith(TESTED)}
        for row in rows
        if any(name.endswith(TESTED) for name in row)
    ]


TESTED = (".word_loss", ".word_accuracy", ".class_loss", ".accuracy")
"""Ends of the figures of a task's test."""
