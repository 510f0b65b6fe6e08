"""What is told of the rounds: microseconds a batch above the bare loop, and for one callback more."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.common.measured import Figure
from benchmarks.common.rounds import Round, figures

BARE, LEAN, MANY, TEN, TENSORS = "bare", "lean", "many", "ten", "to_tensors"
CALLBACKS = 20
"""Of the side ``MANY``; the others have none."""
UNIT = "µs a batch"
LOSSES = {"a batch": (LEAN, BARE), "a ring or callback": (MANY, LEAN)}
"""What peers are compared by: one side above another."""
GOALS = {"minimal": 5.0, "ten": 15.0, "ring": 0.3}


@dataclass(frozen=True)
class Peer:
    """An engine beside a bare loop of its framework.

    Attributes:
        title: as the table tells it.
        engine: its file.
        bare: that of the bare loop.
        environment: that it needs (``scripts/references/requirements-ENVIRONMENT.txt``); None: this one.
    """

    title: str
    engine: str
    bare: str
    environment: str | None = None

    @property
    def sides(self) -> dict[str, tuple[str, int]]:
        """Return what takes turns in its process, with the numbers of callbacks."""
        return {BARE: (self.bare, 0), LEAN: (self.engine, 0), MANY: (self.engine, CALLBACKS)}


ONION = Peer("onion", "onion", "bare_arrays")
ONION_SIDES = {**ONION.sides, TEN: ("onion_of_ten", 0), TENSORS: ("bare_to_tensors", 0)}
PEERS = (
    Peer("Ignite", "ignite", "bare_torch", "loops"),
    Peer("mmengine", "mmengine", "bare_torch", "loops"),
    Peer("Lightning", "lightning", "bare_torch", "loops"),
    Peer("Hugging Face Trainer", "hugging_face", "bare_torch", "loops"),
    Peer("Keras on torch", "keras", "bare_torch", "loops"),
    Peer("paddle.Model.fit", "paddle_model", "bare_paddle"),
    Peer("PaddleNLP Trainer", "paddlenlp", "bare_paddle", "paddlenlp"),
)
NOTES = (
    "What the loop itself costs is onion's figure above the bare loop with `to_tensors`: both make tensors alike.",
    "mmengine takes torch's DataLoader only, which hands out the ready batches here; what that costs is in its figure.",
    "Keras always has one callback that does nothing: without any it tells a pool of threads, which takes longer.",
    "Callbacks and rings hear of both ends of a batch; Ignite's handler of the end.",
)


def above(rounds: Sequence[Round], name: str, side: str, below: str = BARE, parts: int = 1) -> list[float]:
    """Return by how much a side of a process is above another one of it in each round, divided by ``parts``."""
    return [(each[name][side] - each[name][below]) / parts for each in rounds]


def of_onion(rounds: Sequence[Round]) -> list[Figure]:
    """Return the lines of onion, with the goals."""
    name = ONION.title
    return [
        Figure("bare loop on Paddle, of arrays", UNIT, figures(rounds, name, BARE)),
        Figure("onion, minimal: above it", UNIT, above(rounds, name, LEAN), at_most=GOALS["minimal"]),
        Figure("onion, ten more items: above it", UNIT, above(rounds, name, TEN), at_most=GOALS["ten"]),
        Figure("onion: a ring more", UNIT, above(rounds, name, MANY, LEAN, CALLBACKS), at_most=GOALS["ring"], digits=3),
        Figure(
            "bare loop with onion's `to_tensors` for `paddle.to_tensor`: above it", UNIT, above(rounds, name, TENSORS)
        ),
        Figure("onion, minimal: above the bare loop with `to_tensors`", UNIT, above(rounds, name, LEAN, below=TENSORS)),
    ]


def of_peer(peer: Peer, rounds: Sequence[Round]) -> list[Figure]:
    """Return the lines of a peer."""
    name = peer.title
    more = above(rounds, name, MANY, LEAN, CALLBACKS)
    return [
        Figure(f"{name}: bare loop of its framework", UNIT, figures(rounds, name, BARE)),
        Figure(f"{name}: above it", UNIT, above(rounds, name, LEAN)),
        Figure(f"{name}: a callback more", UNIT, more, digits=3),
    ]


def verdict(peers: Sequence[Peer], rounds: Sequence[Round]) -> str:
    """Tell than which peers onion costs less: a batch, and a ring against a callback.

    It costs less where the upper quartile of its rounds is below the lower one of the peer's; where they overlap, the
    rounds do not tell.
    """
    told = [f"{what}: {_beside(peers, rounds, *sides)}" for what, sides in LOSSES.items()]
    return f"onion's minimal loop beside {len(peers)} peers, by quartiles of the rounds; {'; '.join(told)}."


def _beside(peers: Sequence[Peer], rounds: Sequence[Round], top: str, bottom: str) -> str:
    low, high = _quartiles(above(rounds, ONION.title, top, bottom))
    theirs = {peer.title: _quartiles(above(rounds, peer.title, top, bottom)) for peer in peers}
    dearer = [title for title, (lower, _) in theirs.items() if high < lower]
    cheaper = [title for title, (_, upper) in theirs.items() if upper < low]
    open_ = [title for title in theirs if title not in (*dearer, *cheaper)]
    named = {"above": cheaper, "not told apart from": open_}
    exceptions = [f"{how} {', '.join(titles)}" for how, titles in named.items() if titles]
    return ", ".join([f"below {'all' if not exceptions else len(dearer)}", *exceptions])


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
