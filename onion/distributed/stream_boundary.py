"""The places between two batches of a stream, which rank 0 reads for all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from onion.data.batch_iterator import POLL_INTERVAL
from onion.distributed.boundary import BATCH, END, ERROR, Boundary

if TYPE_CHECKING:
    from onion.data.cut import Pieces
    from onion.distributed.channel import Message
    from onion.distributed.group import Group
    from onion.engine.state import State

WAIT = "wait"
"""The event of rank 0 while no batch is ready; and that of the others always, who wait for rank 0."""


class Stream(Protocol):
    """Batches that one process reads for all. Only rank 0 calls ``ready``, ``over`` and ``take``."""

    def ready(self, timeout: float) -> bool:
        """Return whether a batch is ready, or the pass is over; wait for it up to this many seconds."""

    def over(self) -> bool:
        """Return whether the pass is over."""

    def take(self) -> list[Message]:
        """Take the batch that is ready; return what each rank is to know of it."""

    def pieces(self, given: Message) -> Pieces:
        """Make the pieces of this rank, of what it was given."""

    def __length_hint__(self) -> Any: ...


class StreamBoundary(Boundary):
    """The batches of a pass over a stream, which rank 0 reads; it gives each rank what its pieces are made of.

    Until a batch is ready the ranks agree several times a second that they wait. So they may wait for days, and a
    signal to any of them is obeyed meanwhile, and the end of any noticed. Rank 0 takes a batch out of its stream only
    when all ranks have agreed to go on with it: none is ever put back.

    Args:
        group: the ranks.
        state: of the run that draws.
        stream: the batches.
    """

    def __init__(self, group: Group, state: State, stream: Stream) -> None:
        super().__init__(group, state, iter(()), stream)
        self._stream = stream
        self._found = WAIT

    def __next__(self) -> Any:
        while not self.ready(POLL_INTERVAL):
            pass
        state, found, self._found = self._running(), self._found, WAIT
        more, self._begun = self._is_more(), state.batch_id
        if found != BATCH:
            self._settled = not more
            raise StopIteration
        messages = self._stream.take() if self._group.rank == 0 else []
        drawn = self._stream.pieces(self._group.scatter(messages))
        self._group.note_drawn(state, drawn, more)
        return drawn.own[0].batch

    def ready(self, timeout: float) -> bool:
        """Return whether the next batch is ready, or none comes any more; all ranks ask together.

        Args:
            timeout: seconds that rank 0 waits for it at most.
        """
        if self._found == WAIT:
            event, error = self._looked(timeout) if self._group.rank == 0 else (WAIT, None)
            self._found = END  # unless all go on, with the event of rank 0
            self._agree(event, None, error, self._is_more())
        return self._found != WAIT

    def _goes_on(self, told: list[Message], event: str) -> bool:
        """Note the event of rank 0, which the others wait for."""
        if event not in (WAIT, BATCH, END):  # the ranks agree on something else, such as to leave
            return super()._goes_on(told, event)
        found, *others = (str(each["event"]) for each in told)
        waits = [WAIT if found in (BATCH, END) else found, *others]
        self._group.refuse_out_of_step(
            [{"at": {**each["at"], "event": what}} for each, what in zip(told, waits, strict=True)]
        )
        self._found = found
        return found == BATCH

    def _looked(self, timeout: float) -> tuple[str, Exception | None]:
        try:
            if not self._stream.ready(timeout):
                return WAIT, None
            return END if self._stream.over() else BATCH, None
        except Exception as error:
            return ERROR, error

    def _is_more(self) -> bool:
        """Return whether the next batch is one more for the batch under way, as Accumulate draws."""
        return self._begun == self._running().batch_id

    def __length_hint__(self) -> Any:
        return self._stream.__length_hint__()
