"""The gradients of a batch that several processes share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from zlib import crc32

from onion.distributed.boundary import place_of
from onion.distributed.gradients import Learned, Mean
from onion.distributed.sums import RunningSum, TreeSum
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.item_tree import walk
from onion.engine.placement import BEHIND_DATA
from onion.engine.state import State
from onion.errors import CompositionError, DataError
from onion.items.split_on_memory_error import SplitOnMemoryError
from onion.training.microbatches import check_inside_updater, updaters_around
from onion.training.pairing import around, machines_inside, networks_of

if TYPE_CHECKING:
    from onion.data.cut import Cut, Piece
    from onion.engine.runner import Runner
    from onion.items.parameter_updater import ParameterUpdater


class DataParallel(RunnerItem):
    """Leave the gradient and the loss of the whole batch on every rank, of which each computes some pieces.

        Runner(
            ProcessGroup(),
            DataProvider(data, 64),
            ParameterUpdater(optimizer),
            DataParallel(),
            GradientMachine(network),
        )

    It runs the inside once for each piece of the batch that this rank has (``ProcessGroup(pieces=)``), and adds up the
    gradients of all ranks on the way out, weighted by what the loss of each piece is a mean over (``GradientMachine``:
    its examples or, with a weight, its tokens). Parameters that got a gradient on any rank have one on
    all. Random numbers that are drawn inside, such as dropout's, depend on seed, pass, batch and piece; the generators
    are put back afterwards, so all ranks draw the same outside. In one process it does nothing.

    Put inside it what works on a piece alone (``SplitOnMemoryError``, what alters batches); put outside it what decides
    about the update (``NanGuard``, ``Accumulate``).

    Args:
        exact: add up the gradients of the pieces as a fixed tree, so that any number of ranks that shares the pieces
            ends with the same bits. It takes log2(pieces of a rank) copies of the gradients more, and the number of
            pieces must be a power of two. Default False: the order of the sum depends on the number of ranks.
        seed: of the random numbers drawn inside. Default 0.

    Raises:
        CompositionError: it is not between a ParameterUpdater and its gradient machines; what retries or skips on one
            rank alone is on the wrong side of it; or, when the run begins, ``exact=True`` and the pieces are no power
            of two, or this rank has several and what alters batches is outside.
        DataError: the weight of a piece is negative or not finite.
        HookError: an item outside replaced the batch, of which this rank has several pieces.
        RankError: the ranks are at different places.
    """

    keep_for_inference = False
    splits_update = runs_again = runs_pieces = True
    place_rules = (BEHIND_DATA,)
    transient = ("_place", "_runs")

    def __init__(self, exact: bool = False, seed: int = 0) -> None:
        self.exact, self.seed = exact, seed
        self._networks: list[Any] = []
        self._updaters: list[ParameterUpdater] = []
        self.reset()

    def reset(self) -> None:
        """Begin before the first batch."""
        self._place: tuple[int, int] | None = None
        self._runs = 0

    def check(self, runner: Runner) -> None:
        """Require a place inside an updater, around its machines, and inside what all ranks decide together."""
        check_inside_updater(self, runner)
        for other in around(self, runner):
            if isinstance(other, SplitOnMemoryError | DataParallel):
                raise CompositionError(f"{self.name} is inside {other.name}, which one rank may run alone; swap them.")
        self._updaters = updaters_around(self, runner)
        self._networks = [network for _, network in networks_of(machines_inside(self, runner))]

    def initialize(self, state: State) -> None:
        """Refuse pieces that no tree has, and items outside that would see the first piece of several only."""
        pieces = 1 if self.group is None else self.group.cut.of
        if self.group is not None and self.group.cut.count > 1 and state.runner is not None:
            self._refuse_outside(state.runner, self.group.cut)
        if self.exact and pieces & (pieces - 1):
            raise CompositionError(
                f"{self.name}: exact=True adds up pieces in pairs, and {pieces} is no power of two; "
                "set ProcessGroup(pieces=8), for example."
            )

    def _refuse_outside(self, runner: Runner, cut: Cut) -> None:
        for item in walk(around(self, runner)):
            if item.alters_batches:
                raise CompositionError(
                    f"{item.name} is outside {self.name}, where it would see the first of {cut.count} pieces of a "
                    f"batch only; move it inside (after it), or start {cut.of} processes, as many as there are pieces."
                )

    @property
    def passive(self) -> bool:  # type: ignore[override]
        """Whether a run may go on with it or without: the sum of one process differs from it in rounding only."""
        return not self.exact

    def identity(self) -> dict[str, Any]:
        """Return what makes the bits of a run: the pieces, where they are summed exactly."""
        pieces = {} if self.group is None or not self.exact else {"pieces": self.group.cut.of}
        return {"exact": self.exact, "seed": self.seed, **pieces}

    def on_batch(self, state: State) -> HookIterator:
        """Run the inside for each piece; add up gradients and loss over all ranks."""
        if self.group is None:
            yield
            return
        self._count_run(state)
        learned = Learned.of(self._networks)
        before = learned.set_aside()
        mean = Mean(learned, TreeSum() if self.exact else RunningSum())
        for piece in self.group.each_piece(state, self.seed, (self._runs, crc32(self.name.encode()))):
            state.loss = state.weight = None
            yield
            if piece.weight:
                mean.add(self._weight(piece, state), state.loss)
        with self.group.collective():
            state.loss, state.weight = mean.leave(self.group, self._at(state)), None
        learned.add(before)

    def _weight(self, piece: Piece, state: State) -> float:
        """Return what the loss of a piece is a mean over: what the gradient machine has told, or its examples."""
        told = piece.weight if state.weight is None else state.weight
        if not 0 <= told < math.inf:
            raise DataError(f"a piece of the batch has the weight {told:g} in the mean of the loss; it must be >= 0.")
        return told

    def _count_run(self, state: State) -> None:
        """Count how often the batch under way is run: each time it draws other numbers."""
        place = state.pass_id, state.batch_id
        self._runs = self._runs + 1 if place == self._place else 0
        self._place = place

    def _at(self, state: State) -> dict[str, Any]:
        """Return what has to be the same on all ranks in this moment."""
        place = {**place_of(state), "place": self.name, "task": state.task, "time": self._runs}
        optimizers = {each.name: each.optimizer for each in self._updaters if hasattr(each.optimizer, "get_lr")}
        return {**place, **{f"learning rate of {name}": float(each.get_lr()) for name, each in optimizers.items()}}
