"""What a loop costs a batch beside the same loop written by hand: onion's, and its peers'.

    python -m benchmarks.loop [--rounds 9] [--batches 1000] [--only NAME ...] [--keep]

Each engine trains a Linear(8, 1) by SGD on ready batches of 32 examples, as lean as its options allow: no log, no
checkpoint, no progress bar, no test. A bare loop of its own framework does the same in the same process, and all take
turns, round after round. The clock is in the network, which is the same on both sides: it runs from the first call to
the last, so what happens once a pass is not in the figures. Before a time is reported, and in every round, the
parameters that all sides end with are compared.
"""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.frame.processes import Round, Side, all_ready, alternate, values
from benchmarks.frame.section import Benchmark, Figure, Section
from benchmarks.frame.tables import quartiles
from benchmarks.loop.work import BARE, CLOSE

LEAN, MANY, TEN, TENSORS, DISTRIBUTED = "lean", "many", "ten", "to_tensors", "distributed"
CALLBACKS = 20
"""Of the side ``MANY``; the others have none."""
UNIT = "µs a batch"
LOSSES = {"a batch": (LEAN, BARE), "an item or callback": (MANY, LEAN)}
"""What peers are compared by: one side above another."""
GOALS = {"minimal": 5.0, "ten": 15.0, "item": 0.3, "distributed": 1.0}

HOW = f"""\
Training a Linear(8, 1) by SGD on ready batches of 32 examples: microseconds a batch above the same loop written by
hand in the same framework and process, each engine as lean as its options allow (no log, checkpoint, bar, test). Onion
is told in its smallest form, with ten more items (Progress, Logger, Saver, Tester, Evaluator, EarlyStopping, four
Observers; none is due), and as the slope between no and {CALLBACKS} items or callbacks that do nothing. The clock is in
the network, which both sides share, and runs from its first call to its last; the garbage collector rests. In every
round all sides of a process end with the same parameters to {CLOSE:g}. Peak memory is that of a process, its bare loop
included."""
NOTES = (
    "What the loop itself costs is onion's figure above the bare loop with `to_tensors`: both make tensors alike.",
    "mmengine takes torch's DataLoader only, which hands out the ready batches here; what that costs is in its figure.",
    "Keras always has one callback that does nothing: without any it tells a pool of threads, which takes longer.",
    "Callbacks and rings hear of both ends of a batch; Ignite's handler of the end.",
)


@dataclass(frozen=True)
class Peer:
    """An engine (``MODULE.NAME``) beside the bare loop of its framework; ``environment`` None: this one."""

    title: str
    engine: str
    bare: str
    environment: str | None = None

    @property
    def sides(self) -> dict[str, tuple[str, int]]:
        """Return what takes turns in its process, with the numbers of callbacks."""
        return {BARE: (self.bare, 0), LEAN: (self.engine, 0), MANY: (self.engine, CALLBACKS)}

    def side(self, batches: int, sides: dict[str, tuple[str, int]] | None = None) -> Side:
        job = {"batches": batches, "sides": sides or self.sides}
        return Side(self.title, "benchmarks.loop.work", job, self.environment)


ONION = Peer("onion", "onion_engines.onion", "onion_engines.bare_arrays")
ONION_SIDES = {
    **ONION.sides,
    TEN: ("onion_engines.onion_of_ten", 0),
    TENSORS: ("onion_engines.bare_to_tensors", 0),
    DISTRIBUTED: ("onion_engines.onion_distributed", 0),
}
PEERS = {
    **{
        name: Peer(title, f"torch_engines.{name}", "torch_engines.bare", "loops")
        for name, title in {
            "ignite": "Ignite",
            "mmengine": "mmengine",
            "lightning": "Lightning",
            "hugging_face": "Hugging Face Trainer",
            "keras": "Keras on torch",
        }.items()
    },
    "paddle_model": Peer("paddle.Model.fit", "paddle_engines.model_fit", "paddle_engines.bare"),
    "paddlenlp": Peer("PaddleNLP Trainer", "paddle_engines.paddlenlp", "paddle_engines.bare", "paddlenlp"),
}


def measure(section: Section, given: Namespace) -> None:
    """Run the rounds. A peer whose environment cannot be installed is left out, which a note says.

    Raises:
        FailedError: a side ended, as one does that computes something else than its bare loop.
    """
    sides = [ONION.side(given.batches, ONION_SIDES)]
    there: list[Peer] = []
    for name in given.only:
        try:
            sides.append(PEERS[name].side(given.batches))
            there.append(PEERS[name])
        except subprocess.CalledProcessError:
            section.notes.append(f"{PEERS[name].title} is left out: pip cannot install its environment.")
    with all_ready(sides):
        rounds = alternate(sides, given.rounds)
    section.figures += [*of_onion(rounds), *(figure for peer in there for figure in of_peer(peer, rounds))]
    section.add_memory(sides)
    section.add_versions(sides)
    if there:
        section.notes += [*NOTES, verdict(there, rounds)]


def above(rounds: Sequence[Round], name: str, side: str, below: str = BARE, parts: int = 1) -> list[float]:
    """Return by how much a side of a process is above another one of it in each round, divided by ``parts``."""
    return [(each[name][side] - each[name][below]) / parts for each in rounds]


def of_onion(rounds: Sequence[Round]) -> list[Figure]:
    name = ONION.title
    alone = "onion, with `distributed` in one process: above onion, minimal"
    instead = "bare loop with onion's `to_tensors` for `paddle.to_tensor`: above it"
    return [
        Figure("bare loop on Paddle, of arrays", UNIT, values(rounds, name, BARE)),
        Figure("onion, minimal: above it", UNIT, above(rounds, name, LEAN), at_most=GOALS["minimal"]),
        Figure("onion, ten more items: above it", UNIT, above(rounds, name, TEN), at_most=GOALS["ten"]),
        Figure(
            "onion: an item more", UNIT, above(rounds, name, MANY, LEAN, CALLBACKS), at_most=GOALS["item"], digits=3
        ),
        Figure(alone, UNIT, above(rounds, name, DISTRIBUTED, below=LEAN), at_most=GOALS["distributed"]),
        Figure(instead, UNIT, above(rounds, name, TENSORS)),
        Figure("onion, minimal: above the bare loop with `to_tensors`", UNIT, above(rounds, name, LEAN, below=TENSORS)),
    ]


def of_peer(peer: Peer, rounds: Sequence[Round]) -> list[Figure]:
    name = peer.title
    return [
        Figure(f"{name}: bare loop of its framework", UNIT, values(rounds, name, BARE)),
        Figure(f"{name}: above it", UNIT, above(rounds, name, LEAN)),
        Figure(f"{name}: a callback more", UNIT, above(rounds, name, MANY, LEAN, CALLBACKS), digits=3),
    ]


def verdict(peers: Sequence[Peer], rounds: Sequence[Round]) -> str:
    """Return than which peers onion costs less: a batch, and a ring against a callback.

    It costs less where the upper quartile of its rounds is below the lower one of the peer's; where they overlap, the
    rounds do not tell them apart.
    """
    found = [f"{what}: {_beside(peers, rounds, *sides)}" for what, sides in LOSSES.items()]
    return f"onion's minimal loop beside {len(peers)} peers, by quartiles of the rounds; {'; '.join(found)}."


def _beside(peers: Sequence[Peer], rounds: Sequence[Round], top: str, bottom: str) -> str:
    low, high = quartiles(above(rounds, ONION.title, top, bottom))
    theirs = {peer.title: quartiles(above(rounds, peer.title, top, bottom)) for peer in peers}
    dearer = [title for title, (lower, _) in theirs.items() if high < lower]
    cheaper = [title for title, (_, upper) in theirs.items() if upper < low]
    open_ = [title for title in theirs if title not in (*dearer, *cheaper)]
    named = {"above": cheaper, "not told apart from": open_}
    exceptions = [f"{how} {', '.join(titles)}" for how, titles in named.items() if titles]
    return ", ".join([f"below {'all' if not exceptions else len(dearer)}", *exceptions])


BENCHMARK = Benchmark("loop", "The loop", HOW, __doc__, measure, rounds=9, parts=PEERS)
BENCHMARK.parser.add_argument("--batches", type=int, default=1000, help="a round and side")
main = BENCHMARK.main


if __name__ == "__main__":
    sys.exit(main())
