"""What the control channel costs by the number of ranks: one exchange, of a few words by each.

    python -m benchmarks.channel [--rounds 5] [--exchanges 50] [--keep]

Rank 0 is this process. All others are connections of one more process, over the loopback: what is measured is what rank
0 and the machine do for each of them, without a network, and without Paddle.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import statistics
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Client, Connection, Listener
from time import perf_counter, process_time
from typing import Any

from benchmarks.frame.processes import turned
from benchmarks.frame.section import Benchmark, Figure, Section
from onion.distributed.channel import Channel

RANKS = (2, 8, 64, 256, 1000)
SAME, OTHER = "all say the same", "one says something else"
BUSY = "processor of rank 0"
SPARE = 64
"""Files that a process has open besides the connections."""
TIMEOUT = 60.0
"""Seconds to wait for an exchange."""

HOW = """\
An exchange of the control channel by the number of ranks: what each says (80 bytes, as before a batch) goes to rank 0
over a socket each, and rank 0 answers all, with one byte where all have said the same, and otherwise with what everyone
has said. Rank 0 is a process, all other ranks are the connections of a second one, on the same machine: no network, no
Paddle. The time of an exchange has in it what the second process does for all others, which have processors of their
own elsewhere; the time of rank 0's processor has not. Median of {exchanges} exchanges in each round."""


def measure(section: Section, given: Namespace) -> None:
    """Run the rounds; the figures are named by ``figure_of``."""
    section.how = HOW.format(exchanges=given.exchanges)
    found: dict[tuple[int, str], list[tuple[float, float]]] = {}
    with _files(max(RANKS) + SPARE):
        for number in range(given.rounds):
            for ranks in turned(RANKS, number):
                for what in (SAME, OTHER):
                    found.setdefault((ranks, what), []).append(exchanged(ranks, given.exchanges, what == OTHER))
    for what in (SAME, OTHER):
        for ranks in RANKS:
            wall, busy = ([1e3 * each for each in times] for times in zip(*found[ranks, what], strict=True))
            section.figures.append(Figure(name_of(ranks, what), "ms", wall, digits=3))
            section.figures.append(Figure(f"{name_of(ranks, what)}: {BUSY}", "ms", busy, digits=3))


def name_of(ranks: int, what: str) -> str:
    return f"an exchange of {ranks:,} ranks, {what}"


def exchanged(ranks: int, exchanges: int, differs: bool = False) -> tuple[float, float]:
    """Return the seconds of an exchange between so many ranks: of the median one, and of rank 0's processor.

    Args:
        ranks: how many, 2 or more.
        exchanges: how many are timed; one more is made before.
        differs: whether rank 0 says something else than the others.
    """
    with Listener(("127.0.0.1", 0), backlog=ranks) as listener:
        others = multiprocessing.get_context("spawn").Process(
            target=answer, args=(listener.address, ranks - 1, exchanges + 1), daemon=True
        )
        others.start()
        connections = {rank: listener.accept() for rank in range(1, ranks)}
    channel = Channel(0, connections, TIMEOUT)
    wall, busy = [], []
    for number in range(exchanges + 1):
        begun = perf_counter(), process_time()
        heard = channel.exchange(said(number, "end" if differs else "batch"))
        wall.append(perf_counter() - begun[0])
        busy.append(process_time() - begun[1])
        assert (heard is not None) == differs
    others.join()
    for connection in connections.values():
        connection.close()
    return statistics.median(wall[1:]), statistics.median(busy[1:])


def said(number: int, brings: str = "batch") -> dict[str, Any]:
    """Return what a rank says before a batch."""
    return {"at": [0, 1, number, None, False], "brings": brings, "stop": None, "stop_pass": None}


def answer(address: Any, count: int, exchanges: int) -> None:
    """Be all ranks but the first."""
    connections: Sequence[Connection] = [Client(address) for _ in range(count)]
    for number in range(exchanges):
        own = json.dumps(said(number)).encode()
        for connection in connections:
            connection.send_bytes(own)
        for connection in connections:
            connection.recv_bytes()


@contextmanager
def _files(count: int) -> Iterator[None]:
    """Let this process and its children open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count) if hard < 0 else min(max(soft, count), hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


BENCHMARK = Benchmark("channel", "The control channel", HOW, __doc__, measure, rounds=5)
BENCHMARK.parser.add_argument("--exchanges", type=int, default=50, help="of a round and number of ranks")
main = BENCHMARK.main


if __name__ == "__main__":
    sys.exit(main())
