"""`StreamPosition`: how far a run has read its stream; `DeadLetters`: the samples it could not use."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import attrs

from onion.checkpointing.atomic_files import sync, write
from onion.online.journal.journal import writing
from onion.online.sources.source import Position
from onion.online.stream.batch_assembler import AssembledBatch, RejectedSample

log = logging.getLogger("onion")


MAX_BYTES = 64 * 2**20  # the file stops growing beyond this
MAX_SAMPLE = 10_000  # characters of a sample's JSON that are written


class DeadLetters:
    """Rows ``{"position", "reason", "sample"}``, one JSON object per line; above 64 MiB, samples are only counted.

    Attributes:
        path: The file, created with the first row. None: samples are only counted.
        count: Number of rejected samples.
        offset: Length of the file.

    Raises:
        CheckpointError: In all methods: the file cannot be written.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self.count = self.offset = 0

    def open(self, path: Path) -> None:
        """Remove the rows after the checkpoint: their samples are read again."""
        self.path = path
        with self._writing():
            if path.exists() and path.stat().st_size > self.offset:
                os.truncate(path, self.offset)

    def add(self, rejected: Sequence[RejectedSample]) -> None:
        """Write a row for each."""
        if not rejected:
            return
        if self.count == 0:
            log.warning("samples are rejected, the first because of %s; see %s", rejected[0].reason, self.path)
        self.count += len(rejected)
        if self.path is None or self.offset >= MAX_BYTES:
            return
        content = b"".join(_row(each) for each in rejected)
        with self._writing(), self.path.open("ab") as file:
            write(file, content)
        self.offset += len(content)

    def settle(self) -> None:
        """Sync the file."""
        if self.path is not None and self.offset and self.path.exists():
            with self._writing(), self.path.open("ab") as file:
                sync(file)

    def _writing(self) -> AbstractContextManager[None]:
        return writing(f"the rejected samples to {self.path}")


def _row(rejected: RejectedSample) -> bytes:
    sample: Any = rejected.sample.data
    text = json.dumps(sample, ensure_ascii=False, default=repr)
    if len(text) > MAX_SAMPLE:
        sample = text[:MAX_SAMPLE]
    row = {"position": rejected.sample.position, "reason": rejected.reason, "sample": sample}
    return json.dumps(row, ensure_ascii=False, default=repr).encode(errors="replace") + b"\n"


@attrs.define
class StreamPosition:
    """What was read of a stream since the beginning of the first run.

    Attributes:
        position: Behind the last sample; ``""``: the beginning.
        batches: Number of batches drawn.
        samples: Number of samples in them.
        in_pass: Number of samples in the current pass.
        dead_letters: Samples that could not be used.
    """

    position: Position = ""
    batches: int = 0
    samples: int = 0
    in_pass: int = 0
    dead_letters: DeadLetters = attrs.field(factory=DeadLetters)

    def add(self, taken: AssembledBatch) -> None:
        """Advance past an assembled batch."""
        self.position = taken.position
        self.samples += taken.samples
        self.in_pass += taken.samples
        self.dead_letters.add(taken.rejected)

    def state_dict(self) -> dict[str, Any]:
        """Return all of it as JSON scalars; the rejected samples so far are on disk."""
        self.dead_letters.settle()
        return {
            "position": self.position,
            "batches": self.batches,
            "samples": self.samples,
            "in_pass": self.in_pass,
            "rejected": self.dead_letters.count,
            "rejected_bytes": self.dead_letters.offset,
        }

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> StreamPosition:
        """Restore what ``state_dict`` returned, ignoring other keys."""
        dead_letters = DeadLetters()
        dead_letters.count, dead_letters.offset = int(saved["rejected"]), int(saved["rejected_bytes"])
        batches, samples, in_pass = (int(saved[name]) for name in ("batches", "samples", "in_pass"))
        return cls(str(saved["position"]), batches, samples, in_pass, dead_letters)
