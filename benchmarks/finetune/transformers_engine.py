"""transformers' Trainer on torch: its own collator, which pads to the longest, and the sampler that the job names."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments, set_seed

from benchmarks.finetune.work import CLASSES, Clock, Job, columns, trainer_arguments
from benchmarks.frame.worker import Answer

LIBRARIES = ("torch", "transformers")

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def losses(job: Job) -> list[float]:
    model = _model(job["still"])
    with np.load(job["head"]) as head, torch.no_grad():
        model.classifier.weight.copy_(torch.from_numpy(head["weight"].T))
        model.classifier.bias.copy_(torch.from_numpy(head["bias"]))
    tokenizer = AutoTokenizer.from_pretrained(job["still"])
    with tempfile.TemporaryDirectory() as room:
        trainer = _trainer(job, model, tokenizer, "few", room, train_sampling_strategy="sequential", logging_steps=1)
        trainer.train()
    return [told["loss"] for told in trainer.state.log_history if "loss" in told]


def train(job: Job) -> Answer:
    set_seed(job["seed"])
    model, tokenizer = _model(job["folder"]), AutoTokenizer.from_pretrained(job["folder"])
    with tempfile.TemporaryDirectory() as room:
        clock = Clock()
        trainer = _trainer(job, model, tokenizer, "train", room, train_sampling_strategy=job["sampling"])
        steps = trainer.train().global_step
        return {"seconds": clock.seconds(), "steps": steps}


def _model(folder: str) -> Any:
    return AutoModelForSequenceClassification.from_pretrained(folder, num_labels=CLASSES)


def _trainer(job: Job, model: Any, tokenizer: Any, file: str, room: str, **more: Any) -> Trainer:
    texts, partners, labels = columns(job[file])
    found = tokenizer(texts, partners, truncation=True, max_length=job["max_length"])
    fields = {**found, "labels": labels}
    examples = [dict(zip(fields, values, strict=True)) for values in zip(*fields.values(), strict=True)]
    arguments = TrainingArguments(**trainer_arguments(job, room), use_cpu=True, report_to="none", **more)
    return Trainer(model=model, args=arguments, train_dataset=examples, processing_class=tokenizer)
