"""`RunAPI`: what the HTTP service, or any other thread, may request of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from queue import Queue
from typing import Any, Protocol

import attrs


@attrs.frozen
class Answer:
    """The outcome of a command.

    Attributes:
        number: Of the command, from 1, in the order of execution.
        command: Its name.
        step: The step after which it took effect.
        result: A JSON value.
        error: What went wrong, if anything did; the run continues.
    """

    number: int
    command: str
    step: int
    result: Any = None
    error: str | None = None


class RunAPI(Protocol):
    """A run, seen from other threads. Any thread may call any method, and none waits for the loop."""

    def ask(self, command: str, arguments: Mapping[str, Any], key: str | None = None) -> Future[Answer]:
        """Queue a command; commands take effect between two batches, each once, in the order of the calls.

        Args:
            command: ``pause``, ``resume``, ``step`` (``n``), ``save``, ``test``, ``stop`` (``why``), ``set`` (names of
                settings and their values), ``enable`` and ``disable`` (``ring``).
            arguments: JSON values.
            key: A command with a key that was used before is not carried out again; it gets the first one's answer.

        Raises:
            Refused: There is no such command, its arguments are invalid, or the run has ended (409).
        """

    def status(self) -> dict[str, Any]:
        """Return the status as of the last batch boundary: JSON values (see ``docs/online.md``)."""

    def onion(self) -> dict[str, Any]:
        """Return ``{"drawing": text, "timed": bool, "rings": [{name, hook, calls, way_in_us, way_out_us}, ...]}``."""

    def put(self, samples: Sequence[Any], producer: str, cursor: str | None) -> int:
        """Put samples into the stream that the run learns from; return their number.

        0: the cursor is the producer's last one, so these samples were written before.

        Raises:
            Refused: The run has no stream that accepts samples (404).
            Full: There is no room.
        """

    def predict(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Return ``{"predictions": [...], "step": of the snapshot}``.

        Raises:
            Refused: Nothing is published (404, or 503 before the first snapshot), or an input is invalid.
        """

    def subscribe(self) -> Queue[tuple[str, dict[str, Any]] | None]:
        """Return a queue of the events to come, ``(kind, JSON)``; None: the run has ended.

        A slow reader loses the oldest events. Kinds: ``status`` (at most one a second), ``command`` (an answer, with
        its ``arguments``), ``metrics`` (``{"step": ..., "metrics": {name: value}}``).
        """

    def unsubscribe(self, events: Queue[tuple[str, dict[str, Any]] | None]) -> None:
        """Unsubscribe the queue."""
