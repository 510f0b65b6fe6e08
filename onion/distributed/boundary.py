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

BATCH, END, ERROR, LEFT, WORD = "batch", "end", "error", "left", "word"
"""What a rank brings along: its part of a batch, the end of its data, an error, nothing since it leaves, or an ear for
the word of rank 0."""

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
        self._word: Any = None

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
            goes_on = self._agree(brings, drawn, error, more)
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

    def hear(self, word: Any = None) -> Any:
        """Return what rank 0 says before the next batch is drawn; None: nothing, or a rank stops here, and so all do.

        Args:
            word: what this rank says, in JSON; only that of rank 0 counts.
        """
        self._word = None
        self._settled = not self._agree(WORD, None, None, more=False, word=word)
        return self._word

    def _running(self) -> State:
        state = self._state()
        assert state is not None
        return state

    def _put_back(self, drawn: Pieces | None) -> None:
        if drawn is not None:
            self._provider.put_back(drawn.examples)

    def _agree(self, brings: str, drawn: Pieces | None, error: Exception | None, more: bool, **words: Any) -> bool:
        """Agree on what comes next; return whether the ranks go on, with a batch or the word of rank 0."""
        state = self._running()
        own: Message = {"at": place_of(state), "brings": brings, **words}
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
        if failed and all(each.get("brings") == ERROR for each in failed.values()):
            self._fail(error, {rank: each["error"] for rank, each in failed.items()})
        self._group.refuse_out_of_step([{**each, "at": _between(each)} for each in told])
        stopped = {rank: each for rank, each in enumerate(told) if each.get("stop") or each.get("stop_pass")}
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
        self._group.refuse_out_of_step([{"at": {**each["at"], "brings": each["brings"]}} for each in told])
        self._word = told[0].get("word")
        return brings in (BATCH, WORD)

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
        if any(each["brings"] == LEFT and each.get("run_over") for each in stopped.values()):
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
