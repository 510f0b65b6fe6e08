"""The places between two batches, at which all ranks of a group agree on what comes next.

There is one agreement at each place: a rank that has drawn its part of a batch says so, and a rank that is about to
leave says why. So all leave at the same place. A part that was drawn for nothing is put back. What rank 0 wants done
there, such as a command, is passed on in an agreement of its own, before a batch is drawn.
"""

from __future__ import annotations

import logging
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

log = logging.getLogger("onion")

BATCH, END, ERROR, LEFT, BROADCAST = "batch", "end", "error", "left", "broadcast"
"""What a rank comes to a place with: its part of a batch, the end of its data, an error, its leave of the run, or a
value of rank 0 for all."""

PLACE = ("place", "run", "pass", "batch")


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
        self._value: Any = None

    def __next__(self) -> Any:
        state, group = self._running(), self._group
        more, self._begun = self._begun == state.batch_id, state.batch_id  # drawn for the batch under way
        drawn: Pieces | None = None
        error: Exception | None = None
        try:
            drawn = next(self._batches)
        except StopIteration:
            event = END
        except Exception as raised:
            event, error = ERROR, raised
        else:
            event = BATCH
        try:
            goes_on = self._agree(event, drawn, error, more)
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
            self._agree(LEFT, None, None, more=False)

    def broadcast(self, value: Any = None) -> Any:
        """Return the value of rank 0 before the next batch is drawn; None also where a rank stops here, and so all do.

        Args:
            value: of this rank, in JSON; only that of rank 0 counts.
        """
        self._value = None
        self._settled = not self._agree(BROADCAST, None, None, more=False, value=value)
        return self._value

    def _running(self) -> State:
        state = self._state()
        assert state is not None
        return state

    def _put_back(self, drawn: Pieces | None) -> None:
        if drawn is not None:
            self._provider.put_back(drawn.examples)

    def _agree(self, event: str, drawn: Pieces | None, error: Exception | None, more: bool, **more_keys: Any) -> bool:
        """Agree on what comes next; return whether the ranks go on, with a batch or the value of rank 0."""
        state = self._running()
        own: Message = {"at": place_of(state), "event": event, **more_keys}
        if more:
            own["at"] |= {"more": True}
        if drawn is not None:
            own["at"] |= {"task": state.task, "examples": f"{drawn.examples} (crc32 {drawn.crc32:08x})"}
        if error is not None:
            own["error"] = f"{type(error).__name__}: {error}"
        if not more:
            own |= {"stop": state.stopped, "stop_pass": state.pass_stopped}
        told = self._group.exchange(own) or [own]
        failed = {rank: each for rank, each in enumerate(told) if "error" in each}
        if failed and all(each.get("event") == ERROR for each in failed.values()):
            self._fail(error, {rank: each["error"] for rank, each in failed.items()})
        self._group.refuse_out_of_step([{**each, "at": _between(each)} for each in told])
        stopped = {rank: each for rank, each in enumerate(told) if each.get("stop") or each.get("stop_pass")}
        if stopped:
            self._stop(stopped)
            return False
        return self._goes_on(told, event)

    def _goes_on(self, told: list[Message], event: str) -> bool:
        """Return whether a batch comes next, after the events of all ranks; none of them stops."""
        state = self._running()
        ended = [rank for rank, each in enumerate(told) if each["event"] == END]
        if 0 < len(ended) < len(told):
            ranks = ", ".join(map(str, ended))
            raise DataError(
                f"the data of rank {ranks} ended before those of the others, in pass {state.pass_id}, batch "
                f"{state.batch_id}; give every rank the same files"
            )
        self._group.refuse_out_of_step([{"at": {**each["at"], "event": each["event"]}} for each in told])
        self._value = told[0].get("value")
        return event in (BATCH, BROADCAST)

    def _fail(self, error: Exception | None, failed: dict[int, str]) -> None:
        """Leave with an error of the data that some rank has met."""
        why = "; ".join(f"rank {rank}: {text}" for rank, text in failed.items())
        raised = error or DataError(f"the data failed on another rank. {why}")
        self._running().data_error = self._group.agreed = raised
        raise raised

    def _stop(self, stopped: dict[int, Message]) -> None:
        """Stop here for what made other ranks stop; the reason of the first one is everybody's."""
        state = self._running()
        for rank, each in stopped.items():
            if state.pass_stopped is None:
                log.info("rank %d has ended the %s: %s", rank, *_why(each))
            if each.get("stop"):
                state.stop(each["stop"])
            else:
                state.stop_pass(each["stop_pass"])
        if any(each["event"] == LEFT and each.get("run_over") for each in stopped.values()):
            self._group.over = True

    def __length_hint__(self) -> Any:
        hint = length_hint(self._batches, -1)
        return hint if hint >= 0 else NotImplemented


def place_of(state: State) -> dict[str, Any]:
    """Return where a run is between two batches, as all ranks compare it."""
    values = "the next batch", _depth(state), state.pass_id, state.batch_id
    return dict(zip(PLACE, values, strict=True))


def _between(message: Message) -> dict[str, Any]:
    """Return the part of a rank's place that ``place_of`` gives."""
    return {key: message["at"][key] for key in PLACE if key in message["at"]}


def _depth(state: State) -> int:
    depth = 0
    while state.parent is not None:
        depth, state = depth + 1, state.parent
    return depth


def _why(message: Message) -> tuple[str, str]:
    return ("run", message["stop"]) if message.get("stop") else ("pass", message["stop_pass"])
