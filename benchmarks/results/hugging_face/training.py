"""What a task hands to transformers' Trainer, and how the Trainer is set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel, Trainer, TrainingArguments

TEST_BATCH = 64


@dataclass(frozen=True)
class Prepared:
    """A task, ready to be trained.

    Attributes:
        model: the encoder with a new head.
        examples: what it learns.
        collator: makes a batch of examples, padded to the longest.
        figures: measures a trained model on a file.
    """

    model: PreTrainedModel
    examples: list[dict[str, Any]]
    collator: Callable[[list[dict[str, Any]]], dict[str, Any]]
    figures: Callable[[Trainer, str], dict[str, float]]


def in_order(trainer: Trainer, examples: list[dict[str, Any]]) -> Any:
    """Return what a model predicts of examples, in their order.

    A Trainer that groups what it learns by length shuffles what it predicts in the same way, and hands the predictions
    out so.
    """
    trainer.args.train_sampling_strategy = "sequential"
    return trainer.predict(examples).predictions


def trainer_of(job: dict[str, Any], prepared: Prepared, tokenizer: Any, folder: str) -> Trainer:
    """Return a Trainer with the job's settings; batches are of similar length, as onion's are."""
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=job["passes"],
        per_device_train_batch_size=job["batch_size"],
        per_device_eval_batch_size=TEST_BATCH,
        learning_rate=job["lr"],
        warmup_steps=job["warmup"],  # below 1 it is a share of all steps
        lr_scheduler_type="linear",
        weight_decay=job["weight_decay"],
        max_grad_norm=job["clip"],
        seed=job["seed"],
        train_sampling_strategy="group_by_length",
        use_cpu=True,
        save_strategy="no",
        eval_strategy="no",
        logging_steps=50,
        report_to="none",
        disable_tqdm=True,
    )
    return Trainer(
        model=prepared.model,
        args=arguments,
        train_dataset=prepared.examples,
        data_collator=prepared.collator,
        processing_class=tokenizer,
    )
