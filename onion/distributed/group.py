"""The processes that run one onion together, as its items see them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from onion.data.cut import Cut, Piece, Pieces
from onion.device import paddle
from onion.distributed.boundary import LEFT, Boundary, place_of
from onion.distributed.seeding import generators, put_back_generators, seed_generators
from onion.distributed.sharding import Shard
from onion.distributed.stream_boundary import Stream, StreamBoundary
from onion.errors import HookError, OnionError, RankError

if TYPE_CHECKING:
    from onion.distributed.channel import Channel, Message
    from onion.engine.item import RunnerItem
    from onion.engine.state import State

GLOO_WAITS = 30.0
"""Seconds after which a collective over gloo fails, where a rank does not come; no setting changes them."""

Result = TypeVar("Result")


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
        over: whether the ranks have agreed to leave the run.
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
        self._piece_of: State | None = None  # the run whose piece it is; another may run within it
        self._outside: tuple[Any, ...] | None = None  # the random generators as they are outside the pieces
        self.over = False
        self.agreed: BaseException | None = None
        # Of each run, since one within another draws batches of its own before the outer batch is over.
        self._drawn: WeakKeyDictionary[State, list[Pieces]] = WeakKeyDictionary()
        self._looks: WeakKeyDictionary[State, list[Callable[[], None]]] = WeakKeyDictionary()
        self._boundaries: WeakKeyDictionary[State, Boundary] = WeakKeyDictionary()

    # -- messages -----------------------------------------------------------------------------------------------------

    def exchange(self, message: Message) -> list[Message] | None:
        """Tell all ranks something in JSON; return what each has said, or None if all have said the same.

        Raises:
            RankError: a rank has failed, is gone or late, or says something of another kind: it is out of step.
        """
        told = None if self.channel is None else self.channel.exchange(message)
        if told is not None and len({_kind(each) for each in told}) > 1:
            self.refuse_out_of_step(told)
        return told

    def everyone(self, message: Message) -> list[Message]:
        """Tell all ranks something in JSON; return what each has said."""
        return self.exchange(message) or [message] * self.world_size

    def refuse_out_of_step(self, told: Sequence[Message]) -> None:
        """Raise RankError, if one has failed (the key ``error``), or not all are at the same place (``at``)."""
        failed = [f"rank {rank}: {each['error']}" for rank, each in enumerate(told) if "error" in each]
        if failed:
            raise RankError("; ".join(failed))
        places = [_place(each) for each in told]
        texts = [json.dumps(place) for place in places]
        if len(set(texts)) == 1:
            return
        usual = max(texts, key=texts.count)
        several = texts.count(usual) * 2 > len(texts)  # else nobody knows who is right
        common = places[texts.index(usual)]
        keys = list(dict.fromkeys(key for place in places for key in place))
        differs = [key for key in keys if any(place.get(key) != common.get(key) for place in places)]
        told_apart = [
            f"rank {rank} is at {_shown(place, differs)}"
            for rank, place in enumerate(places)
            if not several or texts[rank] != usual
        ]
        if several:
            told_apart.append(f"the others are at {_shown(common, differs)}")
        same = _shown(common, [key for key in ("pass", "batch") if key in common and key not in differs])
        raise RankError(
            f"the ranks are out of step{f' in {same}' if same else ''}: {'; '.join(told_apart)}. What decides on the "
            "order of things (data, tasks, skipped batches, learning rates) must not depend on rank, clock or unseeded "
            "random numbers."
        )

    def scatter(self, messages: Sequence[Message] = ()) -> Message:
        """Scatter messages in JSON from rank 0; return that of this rank."""
        return messages[0] if self.channel is None else self.channel.scatter(messages)

    # -- what rank 0 wants done ---------------------------------------------------------------------------------------

    def broadcast(self, state: State, value: Any = None) -> Any:
        """Return the value of rank 0 between two batches of a run; all ranks call this at the same place.

        Args:
            state: of the run.
            value: of this rank, in JSON; only that of rank 0 counts.

        Returns:
            The value; None also where a rank stops here: then all have stopped now, and nothing is to be done.

        Raises:
            HookError: the ranks do not draw the batches of the run together.
        """
        if state not in self._boundaries:
            raise HookError("the item of the data does not let the ranks draw batches together; use a DataProvider.")
        return self._boundaries[state].broadcast(value)

    def carry_out(self, act: Callable[[], Result]) -> Result:
        """Do on all ranks what rank 0 wants done; return what it comes to here.

        Raises:
            Exception: of this rank, if all ranks have failed: they are still alike, so the run may go on.
            RankError: only some have failed, which it names; the run has to end.
        """
        error: Exception | None = None
        try:
            result = act()
        except RankError:
            raise
        except Exception as raised:
            error = raised
        own: Message = {"at": {"place": "a command"}} | ({} if error is None else {"error": _described(error)})
        told = self.everyone(own)
        if error is not None:
            if all("error" in each for each in told):
                raise error
            raise RankError(f"rank {self.rank}: {own['error']}") from error
        self.refuse_out_of_step(told)
        return result

    # -- the end ------------------------------------------------------------------------------------------------------

    def leave(self, state: State, exchange: Callable[[Message], list[Message]] | None = None) -> None:
        """Agree once that the run is over; a rank that has begun another pass, since only others have stopped, ends it.

        What exchanges something on its way out of a run calls this first: others may be drawing a batch.

        Args:
            state: of the outermost run.
            exchange: takes the message of this rank, returns those of all. Default: ``everyone``.
        """
        if self.over:
            return
        over = {"stop": state.stopped, "stop_pass": None, "run_over": True}
        told = (exchange or self.everyone)({"at": place_of(state), "event": LEFT, **over})
        if not any(each.get("stop") for each in told):
            self.refuse_out_of_step(
                [{"at": {**each["at"], "event": each["event"]}} if "event" in each else each for each in told]
            )
        self.over = True

    # -- batches ------------------------------------------------------------------------------------------------------

    def together(self, state: State, batches: Iterator[Any], provider: Any) -> Boundary:
        """Return the batches of a pass, which the ranks draw together."""
        self._boundaries[state] = boundary = Boundary(self, state, batches, provider)
        return boundary

    def scattered(self, state: State, stream: Stream) -> StreamBoundary:
        """Return the batches of a pass over a stream that rank 0 reads for all."""
        self._boundaries[state] = boundary = StreamBoundary(self, state, stream)
        return boundary

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
        batch, around = state.batch, (self.piece, self.is_last_piece, self._piece_of, self._outside)
        own = self._pieces_of(state, batch)
        full = [piece for piece in own if piece.weight] or own[:1]
        self._outside = kept = generators()
        try:
            for self.piece in full:
                self.is_last_piece, self._piece_of = self.piece is full[-1], state
                seed_generators(seed, (state.pass_id, state.batch_id, self.piece.number, *place))
                state.batch = batch if self.piece.number == self.cut.first else self.piece.batch
                yield self.piece
                for look in self._looks.get(state, ()):
                    look()
        finally:
            put_back_generators(kept)
            state.batch, (self.piece, self.is_last_piece, self._piece_of, self._outside) = batch, around

    def is_in_piece(self, state: State) -> bool:
        """Return whether an item further out runs the inside for each piece of the batch of this run."""
        return self._piece_of is state

    @contextmanager
    def apart_from_pieces(self) -> Iterator[None]:
        """Let a run within a piece draw the random numbers that it would draw outside of all pieces, on every rank."""
        if self._outside is None:
            yield
            return
        inside = generators()
        put_back_generators(self._outside)
        try:
            yield
        finally:
            put_back_generators(inside)

    @contextmanager
    def watched(self, state: State, look: Callable[[], None]) -> Iterator[None]:
        """Call a function after each piece that an item of a run lets its inside run on."""
        looks = self._looks.setdefault(state, [])
        looks.append(look)
        try:
            yield
        finally:
            looks.remove(look)

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
            "which that item saw the first only; set alters_batches = True in its class, so that distributed(runner) "
            "moves it into DataParallel, or move it there yourself; or start as many processes as a batch has pieces "
            f"({self.cut.of})."
        )

    # -- optimizers ---------------------------------------------------------------------------------------------------

    def shard_of(self, optimizer: Any) -> Shard:
        """Return the part of an optimizer's state that this rank keeps."""
        return Shard(optimizer, self.rank, self.world_size)

    # -- tensors ------------------------------------------------------------------------------------------------------

    @contextmanager
    def collective(self) -> Iterator[None]:
        """Let tensors go between ranks inside; where that fails, find out who is to blame.

        A collective of Paddle says at best that a connection was lost, and that only to the neighbours of the rank that
        is gone; others wait for 30 seconds (gloo).

        Raises:
            RankError: a rank is gone or does not answer; it is named.
        """
        try:
            yield
        except Exception as error:
            if self.channel is None or isinstance(error, OnionError):
                raise
            self.channel.exchange({"at": {"place": "a failed collective"}}, min(self.channel.timeout, GLOO_WAITS))
            raise RankError(f"a collective of Paddle failed, and all ranks are there still: {error}") from error

    def gathered(self, value: Any) -> list[Any]:
        """Return an object of each rank, in order; arrays and what pickle takes."""
        if self.channel is None:
            return [value]
        self.exchange({"at": {"place": "outputs to be gathered"}})
        found: list[Any] = []
        with self.collective():
            _distributed().all_gather_object(found, value)
        return found

    def from_first(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return the arrays that rank 0 has; others give nothing."""
        if self.channel is None:
            return arrays
        own = {name: _layout(array) for name, array in arrays.items()}
        kinds = self.everyone({"arrays": own if self.rank == 0 else None})[0]["arrays"]
        return {name: self._broadcast_array(arrays.get(name), kind, shape) for name, (kind, shape) in kinds.items()}

    def to_first(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return on rank 0 the arrays of all ranks, in numpy's form; on the others their own. No two have one name."""
        if self.channel is None:
            return arrays
        own = {name: np.asarray(array) for name, array in arrays.items()}
        layouts = {name: _layout(array) for name, array in own.items()}
        told = self.everyone({"at": {"place": "arrays to be gathered"}, "arrays": layouts})
        found = dict(own)
        for rank, each in enumerate(told[1:], start=1):
            for name, (kind, shape) in each["arrays"].items():
                # To all: over gloo, two ranks alone can exchange something only if the others do so too.
                array = self._broadcast_array(own.get(name), kind, shape, rank)
                if self.rank == 0:
                    found[name] = array
        return found

    def _broadcast_array(self, array: Any, kind: str, shape: list[int], source: int = 0) -> Any:
        size = _bytes(kind, shape)
        if size == 0:
            return np.zeros(shape, np.dtype(kind))
        if self.rank == source:
            flat = np.ascontiguousarray(np.asarray(array)).view(np.uint8).reshape(-1)
        else:
            flat = np.zeros(size, np.uint8)
        tensor = paddle().to_tensor(flat)
        with self.collective():
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


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _layout(array: Any) -> list[Any]:
    """Return dtype and shape in JSON."""
    return [str(array.dtype), list(array.shape)]


def _bytes(kind: str, shape: list[int]) -> int:
    return math.prod(shape) * np.dtype(kind).itemsize


def _distributed() -> Any:
    return paddle().distributed


def _place(message: Message) -> dict[str, Any]:
    """Return where a rank is, for comparison; without ``at``, the keys of its message tell that."""
    place: dict[str, Any] = message.get("at", {"place": f"the exchange of {', '.join(message)}"})
    return place


def _kind(message: Message) -> str:
    """Return what a message is about: those of one moment are of one kind."""
    return str(_place(message)["place"])


def _shown(place: dict[str, Any], keys: Sequence[str]) -> str:
    """Return a part of a place in words."""
    words = {key: str(place[key]) if key in place else "none" for key in keys}
    return ", ".join(text if key == "place" else f"{key} {text}" for key, text in words.items())
