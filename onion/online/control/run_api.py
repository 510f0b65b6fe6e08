"""`RunAPI`: what the HTTP service, or any other thread, may ask of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from queue import Queue
from typing import Any, Protocol

import attrs


class Refused(Exception):  # noqa: N818  it is no fault of the program's
    """What was asked for cannot be done; nothing was changed, and nothing recorded.

    Args:
        reason: For the caller.
        status: Of the HTTP answer. Default 400.
    """

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


@attrs.frozen
class Answer:
    """What became of a command.

    Attributes:
        number: Of the command, from 1; they take effect in this order.
        command: Its name.
        step: The step after which it took effect.
        result: What it gave: a JSON value.
        error: What went wrong, if it did; the run continues.
    """

    number: int
    command: str
    step: int
    result: Any = None
    error: str | None = None


class RunAPI(Protocol):
    """A run, seen from other threads. Every method may be called in any of them, and none waits for the loop."""

    def ask(self, command: str, arguments: Mapping[str, Any], key: str | None = None) -> Future[Answer]:
        """Queue a command; it takes effect between two batches, each once, in the order of the calls.

        Args:
            command: ``pause``, ``resume``, ``step`` (``n``), ``save``, ``test``, ``stop`` (``why``), ``set`` (names of
                settings and their values), ``enable`` and ``disable`` (``ring``).
            arguments: JSON values.
            key: A command with a key that was there before is not carried out again; its answer is that of the first.

        Raises:
            Refused: There is no such command, its arguments are invalid, or the run is over (409).
        """

    def status(self) -> dict[str, Any]:
        """Return where the run is, as of the last border: JSON values (see ``docs/online.md``)."""

    def onion(self) -> dict[str, Any]:
        """Return ``{"drawing": text, "timed": bool, "rings": [{name, hook, calls, way_in_us, way_out_us}, ...]}``."""

    def put(self, samples: Sequence[Any], producer: str, cursor: str | None) -> int:
        """Put samples into the stream that the run learns from; return how many were taken.

        0: the producer's last cursor is this one, so they were taken before.

        Raises:
            Refused: The run has no stream that takes samples (404).
            Full: There is no room.
        """

    def predict(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Return ``{"predictions": [...], "step": of the snapshot}``.

        Raises:
            Refused: Nothing is published (404, or 503 before the first snapshot), or an input is invalid.
        """

    def subscribe(self) -> Queue[tuple[str, dict[str, Any]] | None]:
        """Return a queue of the events to come, ``(kind, JSON)``; None: the run is over.

        A slow reader loses the oldest. Kinds: ``status`` (at most one a second), ``command`` (an answer, with its
        ``arguments``), ``metrics`` (``{"step": ..., "metrics": {name: value}}``).
        """

    def unsubscribe(self, events: Queue[tuple[str, dict[str, Any]] | None]) -> None:
        """Send no more events."""
