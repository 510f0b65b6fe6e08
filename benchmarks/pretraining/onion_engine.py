"""onion: the network, masks and batches of its pretraining tasks, by examples or by tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame.processes import THREADS
from benchmarks.frame.worker import Answer
from benchmarks.pretraining.rows import IGNORED, INSIDE, Batch, Row, read_batches, read_rows
from benchmarks.pretraining.work import Job
from onion import DataProvider, GradientMachine, Observer, ParameterUpdater, Runner, RunnerItem
from onion.device import use_threads
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.tokenizer import Tokenizer
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.pretraining.corpus.ernie_examples import ErnieExamples
from onion.tasks.pretraining.corpus.flags import IN_WORD
from onion.tasks.pretraining.examples import collate
from onion.tasks.pretraining.masking.masking import MaskedExamples, Masking
from onion.tasks.pretraining.networks import PretrainingNetwork
from onion.testing import Batches

LIBRARIES = ("paddlepaddle",)


def samples(rows: Sequence[Row], fingerprint: str) -> ErnieExamples:
    """Return rows as the examples of every pass."""
    inside = (np.where(row["units"] == INSIDE, IN_WORD, 0).astype(np.uint8) for row in rows)
    examples = [{**row, "flags": flags} for row, flags in zip(rows, inside, strict=True)]
    return ErnieExamples(examples, fingerprint, left_out=0)


def costs(job: Job) -> list[float]:
    batches = read_batches(job["few"])
    data = Batches([of_given(each) for each in batches])
    return _trained(job, network_of(job["bert still"]), data, len(batches))


def train(job: Job) -> Answer:
    use_threads(THREADS)
    rows, tokenizer = read_rows(job["rows"]), Tokenizer.from_pretrained(job["bert"])
    seed_everything(job["seed"])
    network = network_of(job["bert"])
    begun = time.perf_counter()
    masked = MaskedExamples(samples(rows, job["rows"]), Masking(share=job["share"]), tokenizer, job["seed"])
    unit = "tokens_per_batch" if "tokens_per_batch" in job else "batch_size"
    pad = partial(collate, pad_id=tokenizer.pad_id)
    data = DataProvider(masked, shuffle=True, seed=job["seed"], collate=pad, **{unit: job[unit]})
    found = _trained(job, network, data, -(-len(rows) // job["batch_size"]))
    return {"seconds": time.perf_counter() - begun, "last_cost": float(np.mean(found[-3:]))}


def network_of(folder: str) -> PretrainingNetwork:
    """Load a network whose next-sentence head is that of the folder."""
    loaded = EncoderForPretraining.from_pretrained(Path(folder))
    network = PretrainingNetwork(loaded.encoder, loaded.cls.predictions, classes=2)
    assert network.classifier is not None
    assert loaded.cls.seq_relationship is not None
    network.classifier.set_state_dict(loaded.cls.seq_relationship.state_dict())
    return network


def of_given(given: Batch) -> dict[str, Any]:
    """Return a batch that is masked already as onion's network takes it."""
    positions = np.flatnonzero(given["words"] != IGNORED)
    return {
        "input_ids": given["ids"],
        "token_type_ids": given["types"],
        "lengths": given["mask"].sum(axis=1).tolist(),
        "masked_positions": positions.tolist(),
        "word_labels": given["words"].reshape(-1)[positions],
        "labels": given["labels"],
    }


def _trained(job: Job, network: PretrainingNetwork, data: RunnerItem, steps: int) -> list[float]:
    """Train for a pass, and return the cost of each batch."""
    optimizer = fine_tuning_optimizer(network, job["lr"], steps, 0.0, job["weight_decay"], job["clip"])
    found: list[float] = []
    watch = Observer(on_batch_end=lambda state: found.append(float(state.loss)))  # type: ignore[arg-type]
    Runner(data, watch, ParameterUpdater(optimizer), GradientMachine(network)).run(passes=1)
    return found
