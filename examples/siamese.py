"""Two towers that share all parameters learn how alike two sentences are (SBERT, Reimers and Gurevych 2019).

python examples/siamese.py FOLDER [--output OUT] [--seed 1] [--encoder minilm]

FOLDER has STS-B's train.tsv and dev.tsv: text_a, text_b, label from 0 to 5. What is learned is the cosine of the two
mean-pooled vectors. The same command resumes an interrupted run. The last line is JSON: Spearman's
correlation on dev.tsv before and after; it takes scipy.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from onion import DataProvider, Evaluator, Forward, GradientMachine, ParameterUpdater, Runner, Saver
from onion.data import read_rows
from onion.device import use_threads
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.batches import batch_of
from onion.tasks.data.texts import PAIR, TEXT, examples_of
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.metrics.correlation import CorrelationMetric
from onion.tasks.networks.pooled_encoder import PooledEncoder

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle
from paddle.nn import functional

PASSES, BATCH, RATE = 2, 16, 2e-5


class Siamese(PooledEncoder):
    """A tower that is called with either sentence; that it is one encoder is all there is to sharing."""

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the cosine of the two vectors of every pair, ``[batch]``."""
        return functional.cosine_similarity(super().forward(batch[TEXT]), super().forward(batch[PAIR]))

    def loss(self, cosines: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean squared error; a label of 5 is a cosine of 1."""
        return functional.mse_loss(cosines, batch["labels"] / 5)


def collate(rows: list[dict[str, str]]) -> dict[str, Any]:
    """Make a batch of rows: one of either sentences, and the labels, float32 ``[batch]``."""
    labels = np.array([float(row["label"]) for row in rows], np.float32)
    sides = {side: tokenizer([row[side] for row in rows], max_length=128) for side in (TEXT, PAIR)}
    return {"labels": labels, **{side: batch_of(examples_of(found)) for side, found in sides.items()}}


parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("folder", type=Path)
parser.add_argument("--output", default="out/siamese")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--encoder", default="minilm")
given = parser.parse_args()
use_threads()
seed_everything(given.seed)
tokenizer = Tokenizer.from_pretrained(given.encoder)
train, dev = (read_rows(given.folder / name, [TEXT, PAIR, "label"]) for name in ("train.tsv", "dev.tsv"))
network = Siamese(Encoder.from_pretrained(given.encoder), pooling="mean")
test = Runner(DataProvider(dev, 64, collate=collate), Evaluator(CorrelationMetric()), Forward(network))
runner = Runner(
    Saver(given.output, every=100),
    DataProvider(train, BATCH, shuffle=True, seed=given.seed, collate=collate),
    ParameterUpdater(fine_tuning_optimizer(network, RATE, total_steps=PASSES * -(-len(train) // BATCH))),
    GradientMachine(network),
)
print(runner)
before, begun = test.run(passes=1).metrics["spearman"], perf_counter()
runner.run(passes=PASSES)
report = {"seed": given.seed, "before": before, "after": test.run(passes=1).metrics["spearman"]}
settings = {"encoder": given.encoder, "passes": PASSES, "batch_size": BATCH, "learning_rate": RATE}
print(json.dumps({"example": "siamese", **report, "seconds": round(perf_counter() - begun, 1), **settings}))
