"""PaddleNLP: its ERNIE 1.0 with its criterion, in the loop of its model_zoo/ernie-1.0/run_pretrain.py.

As there, masked tokens are gathered before they are scored. The loop there pads to a fixed length; here rows are padded
to the longest of their batch, which is faster.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import paddle
from paddlenlp.transformers import ErnieForPretraining, ErniePretrainingCriterion
from paddlenlp.utils.log import logger

from benchmarks.frame.worker import Answer
from benchmarks.pretraining.rows import IGNORED, Batch, Row, read_batches, read_rows
from benchmarks.pretraining.work import Job

LIBRARIES = ("paddlenlp", "paddlepaddle")
MASK_ID, SPECIAL = 3, -1
MASKED, SWAPPED = 0.8, 0.9
"""Below the first a masked token becomes [MASK], below the second another word, else it stays."""

logger.set_level(logging.getLevelName(logging.ERROR))


class Rows(paddle.io.Dataset):
    def __init__(self, rows: list[Row], share: float, vocab_size: int) -> None:
        super().__init__()
        self.rows, self.share, self.vocab_size = rows, share, vocab_size

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> Row:
        row = self.rows[number]
        ids = row["ids"]
        chosen = (np.random.rand(len(ids)) < self.share) & (row["units"] != SPECIAL)
        fate = np.random.rand(len(ids))
        new = np.where(chosen & (fate < MASKED), MASK_ID, ids)
        swapped = chosen & (fate >= MASKED) & (fate < SWAPPED)
        new[swapped] = np.random.randint(1, self.vocab_size, swapped.sum())
        return {"ids": new, "types": row["types"], "words": np.where(chosen, ids, IGNORED), "labels": row["label"]}


def collate(rows: list[Row]) -> Batch:
    """Pad rows to the longest."""
    length = max(len(row["ids"]) for row in rows)

    def padded(columns: Iterable[np.ndarray], value: int) -> np.ndarray:
        return np.stack([np.pad(each, (0, length - len(each)), constant_values=value) for each in columns])

    return {
        "ids": padded((row["ids"] for row in rows), 0),
        "types": padded((row["types"] for row in rows), 0),
        "mask": padded((np.ones_like(row["ids"]) for row in rows), 0),
        "words": padded((row["words"] for row in rows), IGNORED),
        "labels": np.array([row["labels"] for row in rows]),
    }


def costs(job: Job) -> list[float]:
    return _trained(job, ErnieForPretraining.from_pretrained(job["ernie still"]), read_batches(job["few"]))


def train(job: Job) -> Answer:
    rows = read_rows(job["rows"])
    np.random.seed(job["seed"])
    paddle.seed(job["seed"])
    model = ErnieForPretraining.from_pretrained(job["ernie"])
    begun = time.perf_counter()
    data = Rows(rows, job["share"], job["vocab_size"])
    sampler = paddle.io.BatchSampler(data, shuffle=True, batch_size=job["batch_size"])
    loader = paddle.io.DataLoader(data, batch_sampler=sampler, collate_fn=collate, return_list=False)
    found = _trained(job, model, loader)
    return {"seconds": time.perf_counter() - begun, "last_cost": float(np.mean(found[-3:]))}


def _trained(job: Job, model: Any, batches: Any) -> list[float]:
    criterion = ErniePretrainingCriterion()
    model.train()
    decayed = {each.name for name, each in model.named_parameters() if not any(nd in name for nd in ("bias", "norm"))}
    rate = paddle.optimizer.lr.PolynomialDecay(job["lr"], len(batches), end_lr=0.0)
    optimizer = paddle.optimizer.AdamW(
        learning_rate=rate,
        parameters=model.parameters(),
        weight_decay=job["weight_decay"],
        apply_decay_param_fun=decayed.__contains__,
        grad_clip=paddle.nn.ClipGradByGlobalNorm(job["clip"]),
    )
    found = []
    for each in batches:
        batch = {name: np.asarray(value) for name, value in each.items()}
        words = batch["words"].reshape(-1)
        positions = np.flatnonzero(words != IGNORED)
        scores, following = model(
            input_ids=paddle.to_tensor(batch["ids"]),
            token_type_ids=paddle.to_tensor(batch["types"]),
            attention_mask=paddle.to_tensor(batch["mask"]),
            masked_positions=paddle.to_tensor(positions),
        )
        lm_loss, next_loss = criterion(
            scores, following, paddle.to_tensor(words[positions][:, None]), paddle.to_tensor(batch["labels"][:, None])
        )
        loss = lm_loss + next_loss
        loss.backward()
        optimizer.step()
        rate.step()
        optimizer.clear_grad()
        found.append(float(loss))
    return found
