"""One run over the same batches, in one of the ways."""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.online_load.samples import VOCABULARY, made_up
from benchmarks.online_load.watch import Watch
from benchmarks.online_load.ways import HookIterator
from onion import GradientMachine, ParameterUpdater, Runner, RunnerItem
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.online import ControlServer, Journal, Spool, StreamProvider
from onion.tasks.batches import batch_of
from onion.tasks.classification import Classifier

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

BATCH, WARM, COOL = 32, 3, 2
"""Samples a batch; batches before the clock starts, and after it has stopped, where a client comes to its end."""

CAPACITY = 10_000_000
"""Of the spool: nothing that a client sends is refused for want of room."""

LONG = 600.0
"""Seconds that a batch waits to be full: all of them are."""

MINILM = EncoderConfig(
    vocab_size=VOCABULARY,
    hidden_size=384,
    num_hidden_layers=6,
    num_attention_heads=12,
    intermediate_size=1536,
    max_position_embeddings=512,
)


class Training:
    """A network and an optimizer that all runs share; the values of the weights do not change the time.

    Args:
        config: of the encoder. Default: MiniLM's.
    """

    def __init__(self, config: EncoderConfig = MINILM) -> None:
        paddle.seed(0)
        self.network = Classifier(Encoder(config), 2)
        self.network.train()
        self.optimizer = paddle.optimizer.AdamW(1e-5, parameters=self.network.parameters())

    def run(self, way: HookIterator, number: int, steps: int) -> dict[str, Any]:
        """Train on the batches of a round in one way.

        Args:
            way: in which.
            number: of the round, which decides about the samples and the dropout.
            steps: batches, besides those before the clock starts.

        Returns:
            ``batches``: the seconds of each, from the end of the one before; ``processor``: the seconds of processors
            that the training and its service took for them; ``client``: what that told, or None.
        """
        paddle.seed(number)
        token = secrets.token_urlsafe()
        with tempfile.TemporaryDirectory() as folder:
            spool = _filled(Path(folder, "samples.db"), BATCH * (WARM + steps + COOL), number)
            watch = Watch(way.client, spool.path, token, WARM, steps)
            service = (Journal(Path(folder, "journal.jsonl")), ControlServer(port=0, token=token)) if way.served else ()
            self._runner(spool, watch, *service).run(steps=WARM + steps + COOL)
        return {"batches": watch.batches(), "processor": watch.processor(), "client": watch.told}

    def _runner(self, spool: Spool, watch: Watch, *service: RunnerItem) -> Runner:
        data = StreamProvider(spool, BATCH, pass_every=10**9, max_wait=LONG, prepare=_example, collate=batch_of)
        updater = ParameterUpdater(self.optimizer)
        return Runner(*service[:1], data, *service[1:], watch, updater, GradientMachine(self.network))


def _filled(path: Path, count: int, seed: int) -> Spool:
    """Return a spool with the samples that are trained on; those that clients put in stand behind them."""
    spool = Spool(path, CAPACITY)
    spool.waiting()  # opens it, which tells writers how many may wait
    with spool.writer("training") as writer:
        writer.write(made_up(count, seed))
    return spool


def _example(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "types": [0] * len(sample["ids"])}
