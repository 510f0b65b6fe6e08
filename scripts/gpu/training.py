"""How fast a network is trained on masked words, and the memory that it takes: a line of JSON.

    python -m scripts.gpu.training [--dtype bfloat16] [--batch 32] [--length 128] [--steps 30]

Random tokens of random lengths, half of the length at least, and an encoder of random weights: BERT base unless said
otherwise. On whatever device Paddle has chosen. The first steps do not count.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np

from onion import GradientMachine, MixedPrecision, ParameterUpdater, Runner, RunnerItem, State
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.tasks.registry import get_task
from scripts.console import parser_of

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

WARM = 5
MASKED_SHARE = 0.15
FIRST_WORD = 5


class RandomTexts(RunnerItem):
    def __init__(self, batch: int, length: int, words: int) -> None:
        self.batch, self.length, self.words = batch, length, words
        self.tokens = 0

    def on_pass(self, state: State) -> None:
        state.batches = self._batches()

    def _batches(self) -> Iterator[dict[str, Any]]:
        random = np.random.default_rng(0)
        while True:
            lengths = random.integers(self.length // 2, self.length + 1, self.batch)
            there = np.arange(lengths.max()) < lengths[:, None]
            ids = np.where(there, random.integers(FIRST_WORD, self.words, there.shape), 0)
            masked = np.flatnonzero(there & (random.random(there.shape) < MASKED_SHARE))
            self.tokens += int(lengths.sum())
            yield {
                "input_ids": ids,
                "token_type_ids": np.zeros_like(ids),
                "lengths": lengths,
                "masked_positions": masked,
                "labels": ids.reshape(-1)[masked],
            }


def main() -> None:
    given = _given()
    config = EncoderConfig(
        vocab_size=given.words,
        hidden_size=given.hidden,
        num_hidden_layers=given.layers,
        num_attention_heads=max(1, given.hidden // 64),
        intermediate_size=4 * given.hidden,
        max_position_embeddings=given.length,
    )
    network = get_task("masked-lm", {"max_length": given.length}).network(Encoder(config))
    texts = RandomTexts(given.batch, given.length, given.words)
    updater = ParameterUpdater(paddle.optimizer.AdamW(1e-4, parameters=network.parameters()))
    precision = [] if given.dtype == "float32" else [MixedPrecision(given.dtype)]
    runner = Runner(texts, updater, *precision, GradientMachine(network))
    loss = float(runner.run(steps=WARM).loss)  # type: ignore[arg-type]
    texts.tokens, started = 0, perf_counter()
    last = float(runner.run(steps=WARM + given.steps).loss)  # type: ignore[arg-type]  # reading the loss waits for the device
    seconds = perf_counter() - started
    device = paddle.device.get_device()
    told = {
        "device": device,
        "dtype": given.dtype,
        "steps": given.steps,
        "examples a second": round(given.steps * given.batch / seconds, 1),
        "tokens a second": round(texts.tokens / seconds),
        "peak bytes": None if device == "cpu" else int(paddle.device.cuda.max_memory_allocated()),  # unknown on the CPU
        "loss": [round(loss, 4), round(last, 4)],
        "beside torch": "not measured",
    }
    print(json.dumps(told))


def _given() -> argparse.Namespace:
    parser = parser_of(__doc__, seed=False)
    parser.add_argument("--dtype", choices=["float32", "float16", "bfloat16"], default="float32")
    for name, usual in {"batch": 32, "length": 128, "steps": 30, "layers": 12, "hidden": 768, "words": 30522}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    return parser.parse_args()


if __name__ == "__main__":
    main()
