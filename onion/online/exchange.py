"""Samples in, predictions out: what other threads give to a run, and get from it, without waiting for its loop."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from onion.errors import DataError
from onion.online.desk import Refused
from onion.online.gathering import told
from onion.online.publish import Publish
from onion.online.stream_provider import StreamProvider

if TYPE_CHECKING:
    from onion.engine.runner import Runner


class Exchange:
    """Finds the items of a run that take samples and predict; every thread may call them through it."""

    def __init__(self) -> None:
        self._provider: StreamProvider | None = None
        self._publish: Publish | None = None
        self._intake = Lock()

    def begin(self, runner: Runner) -> None:
        """Find the items of a run."""
        self._provider = next(iter(runner.all(StreamProvider)), None)
        self._publish = next(iter(runner.all(Publish)), None)

    def let_in(self) -> None:
        """Let in, between two batches, the predictions that wait for that; see Publish."""
        if self._publish is not None:
            self._publish.let_in()

    def end(self) -> None:
        """Let all predictions in: the run stands still from now on."""
        if self._publish is not None:
            self._publish.let_all_in()

    def put(self, samples: Sequence[Any], producer: str, mark: str | None) -> int:
        """Put samples into the stream; return how many were taken, none where the producer's last mark is this one.

        Raises:
            Refused: The run has no stream that takes samples, or it does not take these.
            Full: There is no room.
        """
        source: Any = None if self._provider is None else self._provider.source
        writer = getattr(source, "writer", None)
        if writer is None:
            raise Refused("the run has no stream that takes samples over HTTP; use a Spool or a RedisStream.", 404)
        if len(samples) > getattr(source, "capacity", len(samples)):
            raise Refused(f"{len(samples)} samples at once never have room; send fewer.", 413)
        with self._intake:  # one at a time: a producer's marks are for one writer
            intake = writer(producer)
            try:
                return int(intake.write(list(samples), mark))
            except DataError as error:
                raise Refused(str(error), 503) from error
            finally:
                intake.close()

    def predict(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Return predictions of the newest snapshot, and its step.

        Raises:
            Refused: Nothing is published, or an input does not do.
        """
        if self._publish is None:
            raise Refused("the run publishes nothing; it has no Publish.", 404)
        try:
            return dict(self._publish.predict(list(inputs)))
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"the network does not take these inputs ({told(error)}).") from error
