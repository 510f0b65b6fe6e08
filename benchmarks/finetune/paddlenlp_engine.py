"""PaddleNLP's Trainer: its data set, its tokenizer and its collator, as its own examples put them together."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import paddle
from paddlenlp.data import DataCollatorWithPadding
from paddlenlp.datasets import load_dataset
from paddlenlp.trainer import PrinterCallback, Trainer, TrainingArguments, set_seed
from paddlenlp.transformers import BertForSequenceClassification, BertTokenizer
from paddlenlp.utils.log import logger

from benchmarks.finetune.work import CLASSES, Clock, Job, columns, trainer_arguments
from benchmarks.frame.worker import Answer

LIBRARIES = ("paddlenlp", "paddlepaddle")

logger.set_level(logging.getLevelName(logging.ERROR))


class InOrder(Trainer):  # type: ignore[misc]
    def _get_train_sampler(self) -> Any:
        size = self.args.per_device_train_batch_size
        return paddle.io.BatchSampler(self.train_dataset, shuffle=False, batch_size=size)


def losses(job: Job) -> list[float]:
    model, tokenizer = _loaded(job["paddlenlp still"])
    with np.load(job["head"]) as head:
        model.classifier.set_state_dict(dict(head))
    with tempfile.TemporaryDirectory() as room:
        trainer = _trainer(InOrder, job, model, tokenizer, "few", room, logging_steps=1)
        trainer.train()
    return [told["loss"] for told in trainer.state.log_history if "loss" in told]


def train(job: Job) -> Answer:
    set_seed(job["seed"])
    model, tokenizer = _loaded(job["paddlenlp"])
    with tempfile.TemporaryDirectory() as room:
        clock = Clock()
        steps = _trainer(Trainer, job, model, tokenizer, "train", room).train().global_step
        return {"seconds": clock.seconds(), "steps": steps}


def _loaded(folder: str) -> tuple[Any, Any]:
    return (
        BertForSequenceClassification.from_pretrained(folder, num_classes=CLASSES),
        BertTokenizer.from_pretrained(folder),
    )


def _rows(path: str) -> Iterator[dict[str, Any]]:
    texts, partners, labels = columns(path)
    others: Sequence[str | None] = partners or [None] * len(texts)
    for text, partner, label in zip(texts, others, labels, strict=True):
        yield {"text": text, "partner": partner, "label": label}


def _trainer(kind: type[Trainer], job: Job, model: Any, tokenizer: Any, file: str, room: str, **more: Any) -> Trainer:
    def convert(row: dict[str, Any]) -> dict[str, Any]:
        found = tokenizer(row["text"], row["partner"], max_length=job["max_length"], truncation=True)
        return {**found, "labels": row["label"]}

    examples = load_dataset(_rows, path=job[file], lazy=False).map(convert, lazy=False)
    arguments = TrainingArguments(**trainer_arguments(job, room), device="cpu", report_to=[], **more)
    trainer = kind(
        model=model,
        criterion=paddle.nn.CrossEntropyLoss(),
        args=arguments,
        data_collator=DataCollatorWithPadding(tokenizer),
        train_dataset=examples,
        tokenizer=tokenizer,
    )
    trainer.remove_callback(PrinterCallback)
    return trainer
