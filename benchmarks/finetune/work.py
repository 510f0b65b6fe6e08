"""What the sides share: a process with one engine, a clock that can be stopped, the rows of a file. Pure Python."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from benchmarks.results.files import table

Job = dict[str, Any]
"""Of a training: ``engine`` and what that takes besides; ``folder`` of the encoder, ``still`` the same without dropout,
``paddlenlp`` and ``paddlenlp still`` as PaddleNLP reads them; ``head``, a file; ``train`` and ``few``, files; and
``max_length``, ``batch_size``, ``lr``, ``weight_decay``, ``clip``, ``seed``."""

CLASSES = 2
LIBRARIES: list[str] = []


def prepare(job: Job) -> Callable[..., dict[str, Any]]:
    """Load the engine that the job names; rounds ask for ``losses`` or ``train``."""
    engine = import_module(f"benchmarks.finetune.{job['engine']}_engine")
    LIBRARIES.extend(engine.LIBRARIES)

    def work(ask: str) -> dict[str, Any]:
        gc.collect()  # an optimizer of Paddle's refers to itself: its moments stay until such rings are looked for
        return {"costs": engine.losses(job)} if ask == "costs" else dict(engine.train(job))

    return work


def trainer_arguments(job: Job, room: str) -> dict[str, Any]:
    """Return the TrainingArguments that transformers and PaddleNLP share; they may write to ``room``."""
    return {
        "output_dir": room,
        "num_train_epochs": 1,
        "per_device_train_batch_size": job["batch_size"],
        "learning_rate": job["lr"],
        "lr_scheduler_type": "linear",
        "weight_decay": job["weight_decay"],
        "max_grad_norm": job["clip"],
        "seed": job["seed"],
        "save_strategy": "no",
        "disable_tqdm": True,
    }


class Clock:
    def __init__(self) -> None:
        self._begun = time.perf_counter()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Do not count what is done within."""
        stopped = time.perf_counter()
        yield
        self._begun += time.perf_counter() - stopped

    def seconds(self) -> float:
        return time.perf_counter() - self._begun


def columns(path: str) -> tuple[list[str], list[str] | None, list[int]]:
    """Return the texts of a file, their partners if the rows are pairs, and the numbers of the labels."""
    rows = table(path)
    seconds = [row["text_b"] for row in rows] if "text_b" in rows[0] else None
    return [row["text_a"] for row in rows], seconds, [int(row["label"]) for row in rows]
