"""The batches of a pass over a stream: `StreamBatches` for one process, `SharedStream` for several."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from onion.data.batch_iterator import POLL_INTERVAL
from onion.data.source import say_where
from onion.engine.state import State
from onion.online.stream.batch_assembler import AssembledBatch

if TYPE_CHECKING:
    from onion.data.cut import Pieces
    from onion.distributed.channel import Message
    from onion.distributed.group import Group
    from onion.online.stream.stream_provider import StreamProvider


class StreamBatches(Iterator[Any]):
    """The batches of a pass. A stop waits for the end of a group of batches, such as one of Accumulate."""

    def __init__(self, provider: StreamProvider, state: State) -> None:
        self._provider, self._state = provider, weakref.ref(state)
        self._begun: int | None = None

    def __next__(self) -> Any:
        state = self._state()
        assert state is not None, "batches are drawn by a run"
        between, self._begun = state.batch_id != self._begun, state.batch_id
        try:
            while not (between and state.pass_stopped is not None):
                if self.ready(POLL_INTERVAL):
                    if self._provider.is_over():
                        break
                    if (batch := self._provider.give()) is not None:
                        return batch
        except Exception as error:
            say_where(error, self._provider.place)
            state.data_error = error
            raise
        raise StopIteration

    def ready(self, timeout: float) -> bool:
        """Return whether the next batch is ready, or the pass is over."""
        return self._provider.is_ready(timeout)

    def __length_hint__(self) -> Any:
        return 0 if self._provider.is_over() else NotImplemented


class SharedStream:
    """The batches of a pass, as rank 0 hands them to several processes; see `onion.distributed.stream_boundary`.

    A rank is given the samples of its pieces, as JSON, and how far the stream has been read.
    """

    def __init__(self, provider: StreamProvider, group: Group) -> None:
        self._provider, self._group = provider, group
        self._next: AssembledBatch | None = None

    def ready(self, timeout: float) -> bool:
        """Return whether a batch is ready, or the pass is over; wait for samples up to this many seconds."""
        provider = self._provider
        try:
            if not provider.is_ready(timeout):
                return False
            if provider.is_over():
                return True
            self._next = provider.look()
        except Exception as error:
            say_where(error, provider.place)
            raise
        return self._next is not None

    def over(self) -> bool:
        """Return whether the pass is over."""
        return self._provider.is_over()

    def take(self) -> list[Message]:
        """Take the batch that is ready; return the samples of each rank's pieces."""
        assembled = self._next
        assert assembled is not None, "a batch is taken once it is ready"
        self._provider.take(assembled)
        told = {"examples": assembled.samples, "told": self._provider.told()}
        cuts = [self._group.cut.of_rank(rank) for rank in range(self._group.world_size)]
        return [{**told, "samples": cut.parts(assembled.data)} for cut in cuts]

    def pieces(self, given: Message) -> Pieces:
        """Make the pieces of this rank; rank 0 has prepared them already."""
        provider, cut = self._provider, self._group.cut
        taken, self._next = self._next, None
        if taken is not None:
            return cut.pieces(taken.examples, provider.collate)
        provider.take_over(given["told"])
        prepare = provider.prepare
        parts = [part if prepare is None else [*map(prepare, part)] for part in given["samples"]]
        return cut.made(parts, given["examples"], provider.collate)

    def __length_hint__(self) -> Any:
        # That the time of a pass is up is known to rank 0 alone, and to the others when it tells them.
        by_time = isinstance(self._provider.pass_every, timedelta)
        return 0 if not by_time and self._provider.is_over() else NotImplemented
