"""One run over the same batches in one mode, its clock, and the client that works meanwhile."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from select import select
from time import perf_counter, process_time
from typing import Any

from benchmarks.frame import ROOT
from benchmarks.frame.processes import FailedError
from benchmarks.online_load.client import VOCABULARY, made_up
from onion import GradientMachine, HookIterator, ParameterUpdater, Runner, RunnerItem, State
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.online import ControlServer, Journal, Spool, SpoolWriter, StreamProvider
from onion.tasks.batches import batch_of
from onion.tasks.networks.classifier import Classifier

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

BATCH, WARM = 32, 3
"""Samples per batch; batches before the measured ones."""

CAPACITY = 10_000_000  # of the spool, so large that no client is refused
LONG = 600.0  # seconds that a batch waits to be full: all batches are

MINILM = EncoderConfig(
    vocab_size=VOCABULARY,
    hidden_size=384,
    num_hidden_layers=6,
    num_attention_heads=12,
    intermediate_size=1536,
    max_position_embeddings=512,
)


@dataclass(frozen=True)
class Mode:
    """One mode.

    Attributes:
        name: of it.
        text: for the page.
        served: whether the run has a Journal and a ControlServer with its service.
        client: the work of a client, as in client.py; empty: there is none.
    """

    name: str
    text: str
    served: bool = True
    client: tuple[str, ...] = ()


OFF = Mode("off", "no Journal, no ControlServer: the baseline", served=False)

WAYS = (
    OFF,
    Mode("idle", "the service runs without clients"),
    Mode("watched", "a client requests `/status` once a second, another one reads `/events`", client=("watch",)),
    Mode("http 1", "`POST /samples` of one sample, one call after the other", client=("post", "1")),
    Mode("http 100", "the same, of 100 samples", client=("post", "100")),
    Mode("spool 1", "`SpoolWriter.write` of one sample in another process, one after the other", client=("write", "1")),
    Mode("spool 100", "the same, of 100 samples", client=("write", "100")),
    Mode("commands", "`PATCH /settings` of the learning rate, one after the other", client=("steer",)),
)


def order(number: int) -> list[Mode]:
    """Return the modes in the order of a round: two rounds forth and back, the next two starting with another one."""
    begin = number // 2 % len(WAYS)
    turned = [*WAYS[begin:], *WAYS[:begin]]
    return turned if number % 2 == 0 else turned[::-1]


class Training:
    """A network and an optimizer that all runs share; the values of the weights do not change the time."""

    def __init__(self, config: EncoderConfig = MINILM) -> None:
        paddle.seed(0)
        self.network = Classifier(Encoder(config), 2)
        self.network.train()
        self.optimizer = paddle.optimizer.AdamW(1e-5, parameters=self.network.parameters())

    def run(self, way: Mode, number: int, steps: int) -> dict[str, Any]:
        """Train on the batches of a round in one mode; the number of the round seeds the samples and the dropout.

        Returns:
            ``batches``: the seconds of each, from the end of the one before; ``processor``: the processor seconds of
            the training and its service for them; ``client``: its results, or None.
        """
        paddle.seed(number)
        token = secrets.token_urlsafe()
        with tempfile.TemporaryDirectory() as folder:
            spool = _filled(Path(folder, "samples.db"), BATCH * (WARM + steps), number)
            watch = Watch(way.client, spool.path, token, WARM, steps)
            service = (Journal(Path(folder, "journal.jsonl")), ControlServer(port=0, token=token)) if way.served else ()
            self._runner(spool, watch, *service).run(passes=1)
        return {"batches": watch.batches(), "processor": watch.processor(), "client": watch.told}

    def _runner(self, spool: Spool, watch: Watch, *service: RunnerItem) -> Runner:
        data = StreamProvider(spool, BATCH, pass_every=10**9, max_wait=LONG, prepare=_example, collate=batch_of)
        updater = ParameterUpdater(self.optimizer)
        return Runner(*service[:1], data, *service[1:], watch, updater, GradientMachine(self.network))


def _filled(path: Path, count: int, seed: int) -> Spool:
    """Return a spool with the samples to train on; those of clients are behind them."""
    spool = Spool(path, CAPACITY)
    spool.waiting()  # opens it, which stores the capacity for writers
    with spool.writer("training") as writer:
        writer.write(made_up(count, seed))
    return spool


def _example(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "types": [0] * len(sample["ids"])}


class Watch(RunnerItem):
    """Measures batches, and lets the client work meanwhile. Place it inside the ControlServer.

    Args:
        words: the work of the client; none: there is no client.
        spool: of the run.
        token: of the service.
        warm: batches before the measured ones.
        steps: measured batches.
    """

    def __init__(self, words: Sequence[str], spool: Path, token: str, warm: int, steps: int) -> None:
        self.words, self.spool, self.warm, self.steps = words, spool, warm, steps
        self._token = token
        self._client: Client | None = None
        self._ends: list[float] = []
        self._cpu: list[float] = []
        self.told: dict[str, Any] | None = None
        """The results of the client; None: there was none."""

    def on_pass(self, state: State) -> HookIterator:
        """Start the client, which gets ready during the first batches; get its results after the last one."""
        if self.words:
            assert state.runner is not None
            self._client = Client(self.words, self.spool, str(state.runner[ControlServer].url), self._token)
        try:
            yield
            self.told = None if self._client is None else self._client.told()
        finally:
            if self._client is not None:
                self._client.stop()

    def on_batch(self, state: State) -> HookIterator:
        """Read the clock after each measured batch and the one before them; go on until the client has finished."""
        yield
        if state.step == self.warm and self._client is not None:
            self._client.begin()
        if self.warm <= state.step <= self.warm + self.steps:
            self._ends.append(perf_counter())
            self._cpu.append(process_time())
        if state.step == self.warm + self.steps and self._client is not None:
            self._client.end()
        if state.step >= self.warm + self.steps:
            self._finish(state)

    def _finish(self, state: State) -> None:
        """Stop the run, or have one more batch: a command that is on its way takes effect between two."""
        if self._client is None or self._client.has_told():
            state.stop("all batches were measured")
        else:
            with SpoolWriter(self.spool, "more") as writer:
                writer.write(made_up(BATCH, state.step))

    def batches(self) -> list[float]:
        """Return the seconds of each measured batch, from the end of the one before."""
        return [end - begin for begin, end in pairwise(self._ends)]

    def processor(self) -> float:
        """Return the processor seconds of the process for these batches, in all its threads."""
        return self._cpu[-1] - self._cpu[0]


class Client:
    """A process of client.py, which waits for its start and its end."""

    def __init__(self, words: Sequence[str], spool: Path, url: str, token: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.online_load.client", str(spool), url, *words],
            cwd=ROOT,
            env={**os.environ, "ONION_TOKEN": token},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self) -> None:
        """Wait until it is ready, and start it."""
        self._hear()
        self._say()

    def end(self) -> None:
        """Stop it."""
        self._say()

    def has_told(self) -> bool:
        """Return whether its results are there, or it has ended without any."""
        assert self._process.stdout is not None
        return bool(select([self._process.stdout], [], [], 0)[0])

    def told(self) -> dict[str, Any]:
        """Return its results."""
        results: dict[str, Any] = json.loads(self._hear())
        return results

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _say(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise FailedError(f"a client ended prematurely with status {self._process.wait()}")
        return line
