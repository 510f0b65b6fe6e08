"""What happens in a run, told to whoever listens in other threads."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Lock
from typing import Any, TypeAlias

Event: TypeAlias = "tuple[str, dict[str, Any]]"
"""The kind, and what happened: JSON values."""

KEPT = 1000
"""How many events wait for a listener at most."""


class Events:
    """Gives every event to every listener; one that is slow loses the oldest, and holds nobody up."""

    def __init__(self) -> None:
        self._queues: list[Queue[Event | None]] = []
        self._lock = Lock()
        self._over = False

    def subscribe(self) -> Queue[Event | None]:
        """Return a queue of the events to come."""
        queue: Queue[Event | None] = Queue(KEPT)
        with self._lock:
            self._queues.append(queue)
            if self._over:
                queue.put_nowait(None)
        return queue

    def begin(self) -> None:
        """Tell of a new run."""
        self._over = False

    def unsubscribe(self, queue: Queue[Event | None]) -> None:
        """Forget a queue; harmless when called again."""
        with self._lock, suppress(ValueError):
            self._queues.remove(queue)

    def tell(self, kind: str, event: dict[str, Any]) -> None:
        """Put an event into every queue."""
        self._put((kind, event))

    def end(self) -> None:
        """Put the end into every queue, and into those that come too late: None."""
        self._over = True
        self._put(None)

    def _put(self, event: Event | None) -> None:
        with self._lock:
            for queue in self._queues:
                while True:
                    try:
                        queue.put_nowait(event)
                        break
                    except Full:
                        with suppress(Empty):
                            queue.get_nowait()
