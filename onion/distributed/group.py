"""The processes that run one onion together, as its items see them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from onion.data.cut import Cut, Piece, Pieces
from onion.device import paddle
from onion.distributed.boundary import Boundary
from onion.distributed.seeding import generators, put_back_generators, seed_generators
from onion.distributed.sharding import Shard
from onion.errors import HookError, RankError

if TYPE_CHECKING:
    from onion.distributed.channel import Channel, Message
    from onion.engine.item import RunnerItem
    from onion.engine.state import State


class Group:
    """The processes that run one onion together; an item has it as ``item.group`` for the time of a run.

    Args:
        rank: the number of this process, from 0.
        world_size: how many processes there are.
        pieces: into how many pieces a batch is cut; a multiple of ``world_size``.
        channel: the control channel; None: there is one process.
        shards_optimizers: whether each rank keeps a part of the state of each optimizer; in one process it keeps all.

    Attributes:
        piece: the piece of the batch that the inside runs on now, or None.
        is_last_piece: whether it is the last one of this rank.
        over: whether another rank has left the run, so that this one is about to.
        agreed: the error with which all ranks leave together, or None.
    """

    def __init__(
        self, rank: int, world_size: int, pieces: int, channel: Channel | None, shards_optimizers: bool = False
    ) -> None:
        self.rank, self.world_size, self.channel = rank, world_size, channel
        self.shards_optimizers = shards_optimizers and world_size > 1
        count = pieces // world_size
        self.cut = Cut(pieces, rank * count, count)
        self.piece: Piece | None = None
        self.is_last_piece = False
        self.over = False
        self.agreed: BaseException | None = None
        # Of each run, since one within another draws batches of its own before the outer batch is over.
        self._drawn: WeakKeyDictionary[State, list[Pieces]] = WeakKeyDictionary()

    # -- words --------------------------------------------------------------------------------------------------------

    def exchange(self, message: Message) -> list[Message] | None:
        """Tell all ranks something in JSON; return what each has said, or None if all have said the same."""
        return None if self.channel is None else self.channel.exchange(message)

    def everyone(self, message: Message) -> list[Message]:
        """Tell all ranks something in JSON; return what each has said."""
        return self.exchange(message) or [message] * self.world_size

    def refuse_out_of_step(self, told: Sequence[Message]) -> None:
        """Raise RankError, if the ranks are not at the same place (the key ``at``)."""
        places = [json.dumps(each.get("at")) for each in told]
        if len(set(places)) == 1:
            return
        common = max(places, key=places.count)
        told_apart = "; ".join(f"rank {rank} is at {place}" for rank, place in enumerate(places) if place != common)
        raise RankError(
            f"the ranks are out of step: {told_apart}, the others are at {common}. What decides on the order of things "
            "(data, tasks, skipped batches) must not depend on rank, clock or unseeded random numbers."
        )

    # -- batches ------------------------------------------------------------------------------------------------------

    def together(self, state: State, batches: Iterator[Any], provider: Any) -> Boundary:
        """Return the batches of a pass, which the ranks draw together."""
        return Boundary(self, state, batches, provider)

    def note_drawn(self, state: State, drawn: Pieces, more: bool) -> None:
        """Remember the pieces of a batch that a run has drawn; ``more``: in addition to the batch under way."""
        self._drawn[state] = [*(self._drawn[state] if more else []), drawn]

    def each_piece(self, state: State, seed: int = 0, place: Sequence[int] = ()) -> Iterator[Piece]:
        """Give each piece of the batch under way that this rank has, as ``state.batch``.

        Meanwhile the random generators are seeded from seed, pass, batch, piece and ``place``; afterwards they are put
        back, so that what is outside draws the same numbers on every rank.

        Raises:
            HookError: an item outside has replaced the batch, of several pieces.
        """
        batch, around = state.batch, (self.piece, self.is_last_piece)
        own = self._pieces_of(state, batch)
        full = [piece for piece in own if piece.weight] or own[:1]
        kept = generators()
        try:
            for self.piece in full:
                self.is_last_piece = self.piece is full[-1]
                seed_generators(seed, (state.pass_id, state.batch_id, self.piece.number, *place))
                state.batch = batch if self.piece.number == self.cut.first else self.piece.batch
                yield self.piece
        finally:
            put_back_generators(kept)
            state.batch, (self.piece, self.is_last_piece) = batch, around

    def weights(self, state: State, batches: Sequence[Any], weigh: Callable[[Any], float]) -> list[float]:
        """Return the weights of whole batches, each the sum over all of its pieces.

        Args:
            state: of the run.
            batches: what this rank has of them.
            weigh: returns the weight of a piece.
        """
        pieces = [self._pieces_of(state, batch) for batch in batches]
        own = [[weigh(piece.batch) if piece.weight else 0.0 for piece in each] for each in pieces]
        told = self.everyone({"weights": own})
        return [math.fsum(weight for each in told for weight in each["weights"][i]) for i in range(len(batches))]

    def _pieces_of(self, state: State, batch: Any) -> tuple[Piece, ...]:
        drawn = self._drawn[state]
        for each in drawn:
            if each.own[0].batch is batch:
                return each.own
        if len(drawn) == 1 and len(drawn[0].own) == 1:
            return drawn[0].own
        raise HookError(
            "an item between the data and this one replaced the batch, and this rank has several pieces of it, of "
            "which that item saw the first only; move it further in (after DataParallel or Evaluator), or start as "
            f"many processes as a batch has pieces ({self.cut.of})."
        )

    # -- optimizers ---------------------------------------------------------------------------------------------------

    def shard_of(self, optimizer: Any) -> Shard:
        """Return the part of an optimizer's state that this rank keeps."""
        return Shard(optimizer, self.rank, self.world_size)

    # -- tensors ------------------------------------------------------------------------------------------------------

    def gathered(self, value: Any) -> list[Any]:
        """Return an object of each rank, in order; arrays and what pickle takes."""
        if self.channel is None:
            return [value]
        self.refuse_out_of_step(self.everyone({"at": ["gather"]}))
        found: list[Any] = []
        _distributed().all_gather_object(found, value)
        return found

    def from_first(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return the arrays that rank 0 has; others give nothing."""
        if self.channel is None:
            return arrays
        own = {name: _kind(array) for name, array in arrays.items()}
        kinds = self.everyone({"arrays": own if self.rank == 0 else None})[0]["arrays"]
        return {name: self._broadcast(arrays.get(name), kind, shape) for name, (kind, shape) in kinds.items()}

    def to_first(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return on rank 0 the arrays of all ranks, in numpy's form; on the others their own. No two have one name."""
        if self.channel is None:
            return arrays
        own = {name: np.asarray(array) for name, array in arrays.items()}
        told = self.everyone({"at": ["gather"], "arrays": {name: _kind(array) for name, array in own.items()}})
        self.refuse_out_of_step([{"at": each["at"]} for each in told])
        found = dict(own)
        for rank, each in enumerate(told[1:], start=1):
            for name, (kind, shape) in each["arrays"].items():
                # To all: over gloo, two ranks alone can exchange something only if the others do so too.
                array = self._broadcast(own.get(name), kind, shape, rank)
                if self.rank == 0:
                    found[name] = array
        return found

    def _broadcast(self, array: Any, kind: str, shape: list[int], source: int = 0) -> Any:
        size = _bytes(kind, shape)
        if size == 0:
            return np.zeros(shape, np.dtype(kind))
        if self.rank == source:
            flat = np.ascontiguousarray(np.asarray(array)).view(np.uint8).reshape(-1)
        else:
            flat = np.zeros(size, np.uint8)
        tensor = paddle().to_tensor(flat)
        _distributed().broadcast(tensor, src=source)
        return tensor.numpy().view(np.dtype(kind)).reshape(shape)


@contextmanager
def joined(items: Sequence[RunnerItem], group: Group) -> Iterator[None]:
    """Let items take part in a group for a time."""
    try:
        for item in items:
            item.group = group
        yield
    finally:
        for item in items:
            vars(item).pop("group", None)


def _kind(array: Any) -> list[Any]:
    """Return dtype and shape in JSON."""
    return [str(array.dtype), list(array.shape)]


def _bytes(kind: str, shape: list[int]) -> int:
    return math.prod(shape) * np.dtype(kind).itemsize


def _distributed() -> Any:
    return paddle().distributed
