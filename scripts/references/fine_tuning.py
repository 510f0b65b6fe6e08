"""A short fine-tuning by transformers: the optimizer and the schedule that its Trainer makes, on given batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0}


def fine_tune(folder: str, job: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The loss of each step, float64 ``[steps]``, before its update.

    Args:
        folder: of the encoder.
        job: ``texts``, ``labels``, ``head`` (the classifier's weights, [labels, hidden]), ``batch_size``, ``passes``,
            ``lr``, ``warmup``, ``weight_decay``, ``clip``, ``max_length``.
    """
    import torch
    from torch.nn.utils import clip_grad_norm_
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

    from references.by_transformers import MAKER

    tokenizer = AutoTokenizer.from_pretrained(folder)
    head = torch.tensor(job["head"])
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=len(head), **NO_DROPOUT).float()
    model.train()
    with torch.no_grad():
        model.classifier.weight.copy_(head)
        model.classifier.bias.zero_()
    batches = list(_batches(tokenizer, job)) * job["passes"]
    recipe = {"learning_rate": job["lr"], "warmup_steps": job["warmup"], "weight_decay": job["weight_decay"]}
    arguments = TrainingArguments("unused", use_cpu=True, **recipe)
    trainer = Trainer(model, arguments)
    trainer.create_optimizer_and_scheduler(len(batches))
    losses = []
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        clip_grad_norm_(model.parameters(), job["clip"])
        trainer.optimizer.step()
        trainer.lr_scheduler.step()
        model.zero_grad()
        losses.append(loss.item())
    return {"costs": np.array(losses), "maker": np.array(MAKER)}


def _batches(tokenizer: Any, job: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    import torch

    size = job["batch_size"]
    for begin in range(0, len(job["texts"]), size):
        texts, labels = (job[name][begin : begin + size] for name in ("texts", "labels"))
        cut = {"truncation": True, "max_length": job["max_length"]}
        yield {**tokenizer(texts, padding=True, return_tensors="pt", **cut), "labels": torch.tensor(labels)}
