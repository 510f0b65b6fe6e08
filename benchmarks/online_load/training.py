"""One run over the same batches in one of the ways, its clock, and the client that works meanwhile."""

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
from time import perf_counter, process_time
from typing import Any

from benchmarks.frame import ROOT
from benchmarks.frame.processes import FailedError
from benchmarks.online_load.client import VOCABULARY, made_up
from onion import GradientMachine, HookIterator, ParameterUpdater, Runner, RunnerItem, State
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


@dataclass(frozen=True)
class Mode:
    """One way.

    Attributes:
        name: of it.
        text: for the page.
        served: whether the run has a Journal and a ControlServer with its service.
        client: what a client does meanwhile, as client.py has it; empty: there is none.
    """

    name: str
    text: str
    served: bool = True
    client: tuple[str, ...] = ()


OFF = Mode("off", "no Journal, no ControlServer: what the others are held against", served=False)

WAYS = (
    OFF,
    Mode("idle", "the service is there, and nobody calls"),
    Mode("watched", "a client asks for `/status` once a second, and another one reads `/events`", client=("watch",)),
    Mode("http 1", "`POST /samples` of one sample, one call after the other", client=("post", "1")),
    Mode("http 100", "the same, of 100 samples", client=("post", "100")),
    Mode("spool 1", "`SpoolWriter.write` of one sample in another process, one after the other", client=("write", "1")),
    Mode("spool 100", "the same, of 100 samples", client=("write", "100")),
    Mode("commands", "`PATCH /settings` of the learning rate, one after the other", client=("steer",)),
)


def order(number: int) -> list[Mode]:
    """Return the ways in the order of a round: two rounds there and back, the next two beginning with another one."""
    begin = number // 2 % len(WAYS)
    turned = [*WAYS[begin:], *WAYS[:begin]]
    return turned if number % 2 == 0 else turned[::-1]


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

    def run(self, way: Mode, number: int, steps: int) -> dict[str, Any]:
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


class Watch(RunnerItem):
    """Note when batches end; have the client work while they count. It goes inside the ControlServer.

    Args:
        words: what the client does; none: there is no client.
        spool: the run's.
        token: of the service.
        warm: batches before the clock starts.
        steps: batches that count. Those behind let the client come to its end.
    """

    def __init__(self, words: Sequence[str], spool: Path, token: str, warm: int, steps: int) -> None:
        self.words, self.spool, self.warm, self.steps = words, spool, warm, steps
        self._token = token
        self._client: Client | None = None
        self._ends: list[float] = []
        self._cpu: list[float] = []
        self.told: dict[str, Any] | None = None
        """What the client told; None: there was none."""

    def on_pass(self, state: State) -> HookIterator:
        """Start the client, which gets ready while the first batches are trained on; hear it after the last."""
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
        """Look at the clock, after each batch that counts and the one before them."""
        yield
        if state.step == self.warm and self._client is not None:
            self._client.begin()
        if self.warm <= state.step <= self.warm + self.steps:
            self._ends.append(perf_counter())
            self._cpu.append(process_time())
        if state.step == self.warm + self.steps and self._client is not None:
            self._client.end()

    def batches(self) -> list[float]:
        """Return the seconds of each batch that counts, from the end of the one before."""
        return [end - begin for begin, end in pairwise(self._ends)]

    def processor(self) -> float:
        """Return the seconds of processors that the process has taken for these batches, in all its threads."""
        return self._cpu[-1] - self._cpu[0]


class Client:
    """A process of client.py, which waits for its beginning and its end.

    Args:
        words: what it does.
        spool: the run's.
        url: where the run's service listens.
        token: of the service.
    """

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
        """Wait until it can begin, and let it."""
        self._hear()
        self._say()

    def end(self) -> None:
        """Let it come to its end."""
        self._say()

    def told(self) -> dict[str, Any]:
        """Return what it tells at its end."""
        told: dict[str, Any] = json.loads(self._hear())
        return told

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
            raise FailedError(f"a client ended with status {self._process.wait()} before its time")
        return line
