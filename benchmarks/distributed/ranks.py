"""A rank of a side, as Paddle's launcher starts it: ``python benchmarks/distributed/ranks.py SOCKET``.

It takes a job, and trains whenever it is asked to; how is up to the loop that the job names.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from multiprocessing.connection import Client
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.distributed.counters import Counters
from benchmarks.frame.worker import Answer
from onion import DataProvider, GradientMachine, Observer, ParameterUpdater, Runner
from onion.data.cut import Cut
from onion.device import to_tensors, use_threads
from onion.distributed import distributed
from onion.engine.backward import once
from onion.host import launch
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.tasks.batches import batch_of
from onion.tasks.networks.classifier import Classifier

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle
from paddle.distributed import fleet

VOCABULARY, FIRST_ID = 30522, 1000
RATE, CLIP = 5e-5, 1.0
WARM_UP = 2
"""Steps that are made before any is told of."""

Examples = Sequence[Any]
Note = Callable[[Any], None]
"""What takes the loss of each step at its end."""
Loop = Callable[[Examples, Note], None]


def network(job: Mapping[str, Any]) -> Classifier:
    """Return an encoder with two classes and without dropout, the same on all ranks of all sides."""
    paddle.seed(1)
    config = EncoderConfig(
        vocab_size=VOCABULARY,
        hidden_size=job["width"],
        num_hidden_layers=job["layers"],
        num_attention_heads=max(1, job["width"] // 32),  # 12 of MiniLM's 384
        intermediate_size=4 * job["width"],
        max_position_embeddings=512,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return Classifier(Encoder(config), 2)


def optimizer(trained: Classifier) -> Any:
    clip = paddle.nn.ClipGradByGlobalNorm(CLIP)
    return paddle.optimizer.AdamW(RATE, parameters=trained.parameters(), weight_decay=0.01, grad_clip=clip)


def examples(job: Mapping[str, Any]) -> Examples:
    """Return pairs of sentences of random words: lengths as different as those of MRPC's, half to once ``length``."""
    random = np.random.default_rng(0)
    lengths = random.integers(job["length"] // 2, job["length"] + 1, size=job["steps"] * job["batch"])
    return [
        {
            "ids": random.integers(FIRST_ID, VOCABULARY, size=length),
            "types": np.arange(length) // (length // 2 + 1),
            "label": place % 2,
        }
        for place, length in enumerate(lengths)
    ]


def onion(job: Mapping[str, Any]) -> Loop:
    """Return onion's loop; in several processes with the items for them, with ``exact=True`` if the job says so."""
    trained = network(job)
    stepped = optimizer(trained)

    def loop(data: Examples, note: Note) -> None:
        noting = Observer(on_batch_end=lambda state: note(state.loss))
        provider = DataProvider(data, job["batch"], collate=batch_of)
        runner = Runner(noting, provider, ParameterUpdater(stepped), GradientMachine(trained))
        if launch.world_size() > 1:
            runner = distributed(runner, exact=job.get("exact", False))
        runner.run(passes=1)

    return loop


def data_parallel(job: Mapping[str, Any]) -> Loop:
    """Return a loop by hand around ``paddle.DataParallel``; with ``apart`` the ranks exchange nothing."""
    paddle.distributed.init_parallel_env()
    trained = network(job)
    wrapped = paddle.DataParallel(trained)
    loop = _by_hand(job, wrapped, trained, optimizer(trained))
    return _apart(wrapped, loop) if job.get("apart") else loop


def _apart(wrapped: Any, loop: Loop) -> Loop:
    def without_exchange(data: Examples, note: Note) -> None:
        with wrapped.no_sync():
            loop(data, note)

    return without_exchange


def of_fleet(job: Mapping[str, Any]) -> Loop:
    """Return the same loop around the model and the optimizer that fleet makes."""
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"dp_degree": launch.world_size(), "mp_degree": 1, "pp_degree": 1, "sharding_degree": 1}
    fleet.init(is_collective=True, strategy=strategy)
    trained = network(job)
    return _by_hand(job, fleet.distributed_model(trained), trained, fleet.distributed_optimizer(optimizer(trained)))


def _by_hand(job: Mapping[str, Any], wrapped: Any, trained: Classifier, stepped: Any) -> Loop:
    cut = Cut(launch.world_size(), launch.rank(), 1)

    def loop(data: Examples, note: Note) -> None:
        for batch in _batches(data, job["batch"]):
            own = to_tensors(cut.pieces(batch, batch_of).own[0].batch)
            with once:
                loss = trained.loss(wrapped(own), own)
            loss.backward()
            stepped.step()
            stepped.clear_grad(set_to_zero=False)  # as onion does
            note(loss.detach())

    return loop


def _batches(data: Examples, size: int) -> Iterator[Examples]:
    return (data[begin : begin + size] for begin in range(0, len(data), size))


LOOPS = {"onion": onion, "data_parallel": data_parallel, "fleet": of_fleet}


class Clock:
    """Notes the end of each step, and what had been computed and exchanged by then."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._ends: list[tuple[float, float, dict[str, int]]] = []
        self._losses: list[Any] = []

    def note(self, loss: Any) -> None:
        """Note the end of a step."""
        self._losses.append(loss)
        self._ends.append((perf_counter(), process_time(), self._counters.places()))

    def answer(self) -> Answer:
        """Return what happened between the ends of the first and of the last step.

        Returns:
            ``steps``; ``seconds`` of each; ``processor``, seconds of all; ``losses`` of all, with the first one's;
            ``calls``, kind -> [bytes, seconds] of each call; ``peak_bytes``; ``rank``.
        """
        (_, busy_before, first), (_, busy, last) = self._ends[0], self._ends[-1]
        return {
            "rank": launch.rank(),
            "steps": len(self._ends) - 1,
            "seconds": [after - before for (before, *_), (after, *_) in pairwise(self._ends)],
            "processor": busy - busy_before,
            "losses": [float(each) for each in self._losses],
            "calls": {kind: self._counters.calls[kind][first[kind] : last[kind]] for kind in first},
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }


def main(address: str) -> None:
    """Train as often as asked; end when nobody asks any more."""
    counters = Counters()
    with Client(address, "AF_UNIX") as asking:
        job = asking.recv()
        use_threads(job["threads"])
        loop, data = LOOPS[job["loop"]](job), examples(job)
        loop(data[: WARM_UP * job["batch"]], lambda loss: None)
        asking.send(None)
        while True:
            try:
                asking.recv()
            except EOFError:
                return
            clock = Clock(counters)
            loop(data, clock.note)
            asking.send(clock.answer())


if __name__ == "__main__":
    main(sys.argv[1])
