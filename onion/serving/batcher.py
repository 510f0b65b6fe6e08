"""The queue before the models, and the threads that compute.

There is no timer: whoever finds a thread idle is computed at once, and what arrives meanwhile gathers for the next
batch, so that batches grow with the load by themselves. A batch has rows of one model and of similar length: on a CPU
padding costs what tokens cost. Batches side by side, each on one processor, are faster than one on all of them.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import attrs

from onion.serving.servable import Prepared, Servable

PADDING = 0.1
"""The share of a batch's tokens by which padding may make it larger."""

SMOOTH = 0.9
"""Weight of the past in the measured speed."""


LOOK_EVERY = 0.1
"""Seconds between two looks at whether the end is still waited for."""


class QueueFullError(Exception):
    """There is no room for the rows of a call.

    Args:
        seconds: after which there should be.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__("the queue is full")
        self.seconds = seconds


class ClosedError(Exception):
    """The service ends and takes no more rows."""


@attrs.frozen(eq=False)
class Waiting:
    """A row in the queue."""

    model: Servable
    prepared: Prepared
    future: Future[Any]


@attrs.frozen
class Computed:
    """What one batch was.

    Attributes:
        rows: that were answered.
        tokens: of them.
        seconds: that it took.
    """

    rows: int
    tokens: int
    seconds: float


class Batcher:
    """Computes rows in batches, in threads of its own.

    Args:
        tokens: of a batch at most, padding included.
        room: rows that may wait.
        told: called after each batch with its model and what it was.
        workers: batches that are computed at the same time.
    """

    def __init__(
        self,
        tokens: int,
        room: int,
        told: Callable[[Servable, Computed], None] = lambda model, computed: None,
        workers: int = 1,
    ) -> None:
        self._tokens, self._room, self._told, self._idle = tokens, room, told, workers
        self._queue: deque[Waiting] = deque()
        self._changed = threading.Condition()
        self._closing = self._abandoned = False
        self._row_seconds = 0.01
        self._threads = [
            threading.Thread(target=self._work, name=f"onion-batcher-{number}", daemon=True)
            for number in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, model: Servable, rows: Sequence[Prepared]) -> list[Future[Any]]:
        """Queue the rows of a call, all or none; return a future for each, which its caller may cancel.

        Raises:
            QueueFullError: there is no room for them.
            ClosedError: the service ends.
        """
        futures: list[Future[Any]] = [Future() for _ in rows]
        with self._changed:
            if self._closing:
                raise ClosedError
            if len(self._queue) + len(rows) > self._room:
                self._drop_cancelled()
            if len(self._queue) + len(rows) > self._room:
                raise QueueFullError(len(self._queue) * self._row_seconds / len(self._threads))
            self._queue.extend(map(Waiting, [model] * len(rows), rows, futures))
            self._changed.notify(len(rows))
        return futures

    def waiting(self) -> int:
        """Return how many rows wait."""
        with self._changed:
            self._drop_cancelled()
            return len(self._queue)

    def close(self, seconds: float | None = None) -> bool:
        """Take no more rows, answer those that wait, and end the threads; return whether they ended in time."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        end = math.inf if seconds is None else time.monotonic() + seconds
        for thread in self._threads:
            while thread.is_alive() and not self._abandoned and (left := end - time.monotonic()) > 0:
                thread.join(min(LOOK_EVERY, left))
        return not any(thread.is_alive() for thread in self._threads)

    def abandon(self) -> None:
        """Let :meth:`close` return soon; may be called by a signal handler."""
        self._abandoned = True

    def _work(self) -> None:
        while (batch := self._take()) is not None:
            if batch:
                self._compute(batch)
            with self._changed:
                self._idle += 1

    def _drop_cancelled(self) -> None:
        """Drop rows whose callers have gone."""
        self._queue = deque(each for each in self._queue if not each.future.cancelled())

    def _take(self) -> list[Waiting] | None:
        """Wait for rows, and take a batch out of the queue; None: the end."""
        with self._changed:
            self._drop_cancelled()
            while not self._queue and not self._closing:
                self._changed.wait()
                self._drop_cancelled()
            if not self._queue:
                return None
            chosen = self._chosen(-(-len(self._queue) // self._idle))
            self._idle -= 1
            taken = set(map(id, chosen))
            self._queue = deque(each for each in self._queue if id(each) not in taken)
        # From now on these rows cannot be cancelled, unless they have just been.
        return [each for each in chosen if each.future.set_running_or_notify_cancel()]

    def _chosen(self, most: int) -> list[Waiting]:
        """Return the oldest row and those of its model that are nearest to it in length, as far as they fit.

        Args:
            most: rows; other threads that are idle take the others.
        """
        oldest = self._queue[0]
        if oldest.model.alone:
            return [oldest]
        length = oldest.prepared.longest
        others = sorted(
            (each for each in self._queue if each.model is oldest.model and each is not oldest),
            key=lambda each: abs(each.prepared.longest - length),
        )
        chosen, rows, real, longest = [oldest], len(oldest.prepared.examples), oldest.prepared.tokens, length
        for each in others:
            more, wide = rows + len(each.prepared.examples), max(longest, each.prepared.longest)
            tokens = real + each.prepared.tokens
            if len(chosen) == most or more * wide > min(self._tokens, (1 + PADDING) * tokens):
                break
            chosen.append(each)
            rows, longest, real = more, wide, tokens
        return chosen

    def _compute(self, batch: Sequence[Waiting]) -> None:
        model, begin = batch[0].model, time.perf_counter()
        try:
            answers = model.answer([each.prepared for each in batch])
            seconds = time.perf_counter() - begin
            if len(answers) != len(batch):
                raise RuntimeError(f"{len(batch)} rows have {len(answers)} answers; the task makes one for each")
            # Before the answers: whoever has one and asks for the metrics finds it counted.
            self._told(model, Computed(len(batch), sum(each.prepared.tokens for each in batch), seconds))
        except BaseException as error:  # whatever it is, it is the answer to these rows, and the thread goes on
            for each in batch:
                each.future.set_exception(error)
            return
        self._row_seconds = SMOOTH * self._row_seconds + (1 - SMOOTH) * seconds / len(batch)
        for each, answer in zip(batch, answers, strict=True):
            each.future.set_result(answer)
