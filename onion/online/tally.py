"""How far a run has got in its stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from onion.online.gathering import Gathered
from onion.online.rejects import Rejects
from onion.online.source import Position


@attrs.define
class Tally:
    """What was taken of a stream, from the beginning of the first run on.

    Attributes:
        position: The place behind the last sample; ``""``: the beginning.
        batches: How many were handed out.
        samples: How many are in them.
        in_pass: How many of these are in the pass under way.
        rejects: Those that could not be used.
    """

    position: Position = ""
    batches: int = 0
    samples: int = 0
    in_pass: int = 0
    rejects: Rejects = attrs.field(factory=Rejects)

    def add(self, taken: Gathered) -> None:
        """Be behind what was taken.

        Raises:
            CheckpointError: The rejected samples among it cannot be written.
        """
        self.position = taken.position
        self.samples += taken.samples
        self.in_pass += taken.samples
        self.rejects.add(taken.rejected)

    def state_dict(self) -> dict[str, Any]:
        """Return all of it as JSON scalars; what was rejected so far is on the disk."""
        self.rejects.settle()
        return {
            "position": self.position,
            "batches": self.batches,
            "samples": self.samples,
            "in_pass": self.in_pass,
            "rejected": self.rejects.count,
            "rejected_bytes": self.rejects.offset,
        }

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Tally:
        """Return what ``state_dict`` gave; other keys do not matter."""
        rejects = Rejects()
        rejects.count, rejects.offset = int(saved["rejected"]), int(saved["rejected_bytes"])
        batches, samples, in_pass = (int(saved[name]) for name in ("batches", "samples", "in_pass"))
        return cls(str(saved["position"]), batches, samples, in_pass, rejects)
