"""transformers on torch: run_mlm's parts, which are its collator of masked words and its Trainer."""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoTokenizer,
    BertForPreTraining,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
    set_seed,
)

from benchmarks.finetune.work import trainer_arguments
from benchmarks.frame.worker import Answer
from benchmarks.pretraining.rows import Row, read_batches, read_rows
from benchmarks.pretraining.work import Job

LIBRARIES = ("torch", "transformers")
SPECIAL = -1
"""In the units of a row: a special token."""

NAMES = {
    "ids": "input_ids",
    "types": "token_type_ids",
    "mask": "attention_mask",
    "words": "labels",
    "labels": "next_sentence_label",
}
"""Of a masked batch -> arguments of the network."""

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def costs(job: Job) -> list[float]:
    batches = [
        {argument: torch.from_numpy(each[name]) for name, argument in NAMES.items()}
        for each in read_batches(job["few"])
    ]
    with tempfile.TemporaryDirectory() as room:
        settings = {"train_sampling_strategy": "sequential", "per_device_train_batch_size": 1}
        model = BertForPreTraining.from_pretrained(job["bert still"])
        trainer = _trainer(job, model, batches, lambda given: given[0], room, **settings)
        trainer.train()
    return [told["loss"] for told in trainer.state.log_history if "loss" in told]


def train(job: Job) -> Answer:
    rows, tokenizer = read_rows(job["rows"]), AutoTokenizer.from_pretrained(job["bert"])
    set_seed(job["seed"])
    model = BertForPreTraining.from_pretrained(job["bert"])
    begun = time.perf_counter()
    collate = DataCollatorForLanguageModeling(tokenizer, mlm_probability=job["share"])
    with tempfile.TemporaryDirectory() as room:
        settings = {"train_sampling_strategy": job["sampling"]}
        trainer = _trainer(job, model, [_example(row) for row in rows], collate, room, **settings)
        trainer.train()
        seconds = time.perf_counter() - begun
    losses = [told["loss"] for told in trainer.state.log_history if "loss" in told]
    return {"seconds": seconds, "last_cost": float(np.mean(losses[-3:]))}


def _example(row: Row) -> dict[str, Any]:
    return {
        "input_ids": row["ids"].tolist(),
        "token_type_ids": row["types"].tolist(),
        "special_tokens_mask": (row["units"] == SPECIAL).astype(int).tolist(),
        "next_sentence_label": row["label"],
    }


def _trainer(job: Job, model: Any, examples: list[Any], collate: Any, room: str, **settings: Any) -> Trainer:
    given = {**trainer_arguments(job, room), "logging_steps": 1, **settings}
    arguments = TrainingArguments(**given, use_cpu=True, report_to="none", remove_unused_columns=False)
    return Trainer(model=model, args=arguments, train_dataset=examples, data_collator=collate)
