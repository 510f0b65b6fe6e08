"""What a loop costs a batch beside the same loop written by hand: onion's, and its peers'.

    python -m benchmarks.loop [--rounds 9] [--batches 1000] [--only NAME ...] [--keep]

Each engine trains a Linear(8, 1) by SGD on ready batches of 32 examples, as lean as its options allow: no log, no
checkpoint, no progress bar, no test. A bare loop of its own framework does the same in the same process, and all take
turns, round after round. The clock is in the network, which is the same on both sides: it runs from the first call to
the last, so what happens once a pass is not in the figures. Before a time is told, and in every round, the parameters
that all sides end with are compared.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from benchmarks.common.measured import Measured, of_memory, versions_of
from benchmarks.common.options import parser_of
from benchmarks.common.rounds import Round, alternate
from benchmarks.common.sides import Side, all_ready
from benchmarks.loop.figures import CALLBACKS, NOTES, ONION, ONION_SIDES, PEERS, Peer, of_onion, of_peer, verdict
from benchmarks.loop.work import CLOSE

HOW = f"""\
Training a Linear(8, 1) by SGD on ready batches of 32 examples: microseconds a batch above the same loop written by
hand in the same framework and process, each engine as lean as its options allow (no log, checkpoint, bar, test). Onion
is told in its smallest form, with ten more items (Progress, Logger, Saver, Tester, Evaluator, EarlyStopping, four
Observers; none is due), and as the slope between no and {CALLBACKS} rings or callbacks that do nothing. The clock is in
the network, which both sides share, and runs from its first call to its last; the garbage collector rests. In every
round all sides of a process end with the same parameters to {CLOSE:g}. Peak memory is that of a process, its bare loop
included."""


def main(arguments: list[str] | None = None) -> int:
    """Measure and tell; return the exit status."""
    parser = parser_of("loop", __doc__, rounds=9)
    parser.add_argument("--batches", type=int, default=1000, help="a round and side")
    parser.add_argument(
        "--only", nargs="*", metavar="NAME", help="peers, by the names of their files; none: onion alone"
    )
    settings = parser.parse_args(arguments)
    wanted = [peer for peer in PEERS if settings.only is None or peer.engine in settings.only]
    measured = measure(wanted, settings.rounds, settings.batches)
    measured.tell(settings.keep)
    return 0


def measure(peers: Sequence[Peer], count: int, batches: int) -> Measured:
    """Run the rounds.

    Args:
        peers: beside onion. One whose environment cannot be made is left out, which a note tells.
        count: of rounds.
        batches: a round and side.

    Raises:
        FailedError: a side ended, as one does that computes something else than its bare loop.
    """
    sides = [Side(ONION.title, "benchmarks.loop.side", {"batches": batches, "sides": ONION_SIDES})]
    there: list[Peer] = []
    notes: list[str] = []
    for peer in peers:
        try:
            sides.append(
                Side(peer.title, "benchmarks.loop.side", {"batches": batches, "sides": peer.sides}, peer.environment)
            )
            there.append(peer)
        except subprocess.CalledProcessError:
            notes.append(f"{peer.title} is left out: pip cannot install its environment.")
    with all_ready(sides):
        rounds: list[Round] = alternate(sides, count)
    figures = [*of_onion(rounds), *(figure for peer in there for figure in of_peer(peer, rounds))]
    figures += of_memory({side.name: side.last for side in sides})
    if there:
        notes += [*NOTES, verdict(there, rounds)]
    versions = versions_of(side.last for side in sides)
    return Measured("loop", "The loop", HOW, count, figures, notes, versions)


if __name__ == "__main__":
    sys.exit(main())
