"""The places between two batches, at which all ranks of a group agree on what comes next.

There is one agreement at each place: a rank that has drawn its part of a batch says so, and a rank that is about to
leave says why. So all leave at the same place. A part that was drawn for nothing is put back.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from operator import length_hint
from typing import TYPE_CHECKING, Any

from onion.errors import DataError

if TYPE_CHECKING:
    from onion.data.cut import Pieces
    from onion.distributed.channel import Message
    from onion.distributed.group import Group
    from onion.engine.state import State

BATCH, END, ERROR, LEFT = "batch", "end", "error", "left"
"""What a rank brings along: its part of a batch, the end of its data, an error, or nothing since it leaves."""


class Boundary(Iterator[Any]):
    """The batches of a pass, each of which all ranks draw, or none does.

    Args:
        group: the ranks.
        state: of the run that draws.
        batches: what this rank reads of each batch.
        provider: the item that they are of; its ``put_back(examples)`` takes back the last one.
    """

    def __init__(self, group: Group, state: State, batches: Iterator[Any], provider: Any) -> None:
        self._group, self._batches, self._provider = group, batches, provider
        self._state = weakref.ref(state)  # it holds this object
        self._begun: int | None = None
        self._settled = False

    def __next__(self) -> Any:
        state, group = self._running(), self._group
        more, self._begun = self._begun == state.batch_id, state.batch_id  # drawn for the batch under way
        drawn: Pieces | None = None
        error: Exception | None = None
        try:
            drawn = next(self._batches)
        except StopIteration:
            brings = END
        except Exception as raised:
            brings, error = ERROR, raised
        else:
            brings = BATCH
        try:
            goes_on = self._agree(brings, error, more)
        except BaseException:
            self._put_back(drawn)
            raise
        if not goes_on or drawn is None:
            self._settled = not more
            self._put_back(drawn)
            raise StopIteration
        group.note_drawn(state, drawn, more)
        return drawn.own[0].batch

    def leave(self) -> None:
        """Agree with the others at the end of the pass, unless that was done when no batch was drawn any more."""
        if not self._settled:
            self._agree(LEFT, None, more=False)

    def _running(self) -> State:
        state = self._state()
        assert state is not None
        return state

    def _put_back(self, drawn: Pieces | None) -> None:
        if drawn is not None:
            self._provider.put_back(drawn.examples)

    def _agree(self, brings: str, error: Exception | None, more: bool) -> bool:
        """Agree on what comes next; return whether a batch does."""
        state = self._running()
        own: Message = {
            "at": [_depth(state), state.pass_id, state.batch_id, state.task if brings == BATCH else None, more],
            "brings": brings,
        }
        if error is not None:
            own["error"] = f"{type(error).__name__}: {error}"
        if not more:
            own |= {"stop": state.stopped, "stop_pass": state.pass_stopped}
        told = self._group.exchange(own) or [own]
        failed = {rank: each["error"] for rank, each in enumerate(told) if "error" in each}
        if failed:
            self._fail(error, failed)
        self._group.refuse_out_of_step([{"at": each["at"][:3]} for each in told])
        stopped = [each for each in told if each.get("stop") or each.get("stop_pass")]
        if stopped:
            self._stop(stopped)
            return False
        return self._goes_on(told, brings)

    def _goes_on(self, told: list[Message], brings: str) -> bool:
        """Return whether a batch comes next, after what all ranks bring; none of them stops."""
        state = self._running()
        ended = [rank for rank, each in enumerate(told) if each["brings"] == END]
        if 0 < len(ended) < len(told):
            ranks = ", ".join(map(str, ended))
            raise DataError(
                f"the data of rank {ranks} ended before those of the others, in pass {state.pass_id}, batch "
                f"{state.batch_id}; give every rank the same files"
            )
        self._group.refuse_out_of_step([{"at": [*each["at"], each["brings"]]} for each in told])
        return brings == BATCH

    def _fail(self, error: Exception | None, failed: dict[int, str]) -> None:
        """Leave with an error of the data that some rank has met."""
        why = "; ".join(f"rank {rank}: {text}" for rank, text in failed.items())
        raised = error or DataError(f"the data failed on another rank. {why}")
        self._running().data_error = self._group.agreed = raised
        raise raised

    def _stop(self, stopped: list[Message]) -> None:
        """Stop here for what made other ranks stop; the reason of the first one is everybody's."""
        for each in stopped:
            if each.get("stop"):
                self._running().stop(each["stop"])
            else:
                self._running().stop_pass(each["stop_pass"])
        if any(each.get("brings") == LEFT and each.get("run_over") for each in stopped):
            self._group.over = True

    def __length_hint__(self) -> Any:
        hint = length_hint(self._batches, -1)
        return hint if hint >= 0 else NotImplemented


def _depth(state: State) -> int:
    depth = 0
    while state.parent is not None:
        depth, state = depth + 1, state.parent
    return depth
