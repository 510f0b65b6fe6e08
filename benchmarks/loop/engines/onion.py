"""The smallest onion: DataProvider, ParameterUpdater, GradientMachine; a callback is a ring that only yields."""

from __future__ import annotations

from benchmarks.loop.engines.on_onion import Fields, network, ready, trained
from benchmarks.loop.work import Parameters
from onion import HookIterator, RunnerItem, State

__all__ = ["LIBRARIES", "ready", "train"]

LIBRARIES = ("paddlepaddle",)


class Nothing(RunnerItem):
    """Hears of both ends of a batch."""

    def on_batch(self, state: State) -> HookIterator:
        """Do nothing."""
        yield


def train(batches: list[Fields], callbacks: int) -> Parameters:
    """Train."""
    return trained(batches, network(), *(Nothing() for _ in range(callbacks)))
