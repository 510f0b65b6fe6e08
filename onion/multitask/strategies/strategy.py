"""What a strategy is told, and what it has to say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from onion.errors import CompositionError
from onion.validation import is_number


@attrs.frozen
class TaskInfo:
    """What a strategy is told of a task.

    Attributes:
        mix_ratio: how much of it is wanted, in passes over the reference task.
        batches: its batches a pass; None: a stream, where nobody knows.
    """

    mix_ratio: float
    batches: int | None


class Strategy(ABC):
    """How the task of the next batch is chosen. Nothing but ``weights`` has to be overridden."""

    def check(self, tasks: Mapping[str, TaskInfo]) -> None:  # noqa: B027  doing nothing is the default
        """Raise CompositionError if this strategy cannot work with these tasks; it changes nothing."""

    def begin(self, tasks: Mapping[str, TaskInfo]) -> None:  # noqa: B027  doing nothing is the default
        """Set what a run changes to its first value, as new objects: each run has a shallow copy of the strategy."""

    @abstractmethod
    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Return weights from 0, of which one is above 0; those of tasks that are not asked for do not matter.

        It is called exactly once a batch.

        Args:
            step: how many batches were drawn before this one.
            names: the tasks that may be drawn.
        """

    def foresee(self, step: int, tasks: Mapping[str, TaskInfo]) -> Mapping[str, float] | None:
        """Return the weights of a step, if nothing but the step decides; None (default): that is not known beforehand.

        It is asked when the onion is built, of steps far apart too, to refuse a target that is never finished.

        Raises:
            CompositionError: the weights do not do.
        """
        return None

    def note(self, task: str, loss: Any) -> None:  # noqa: B027  doing nothing is the default
        """Take in the loss of a finished batch; reading it at once would wait for the device."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs, as JSON values."""
        return {}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:  # noqa: B027  doing nothing is the default
        """Take it back; ``begin`` was called before."""


class Fixed(Strategy):
    """The base of strategies whose weights never change."""

    @abstractmethod
    def weigh(self, tasks: Mapping[str, TaskInfo]) -> dict[str, float]:
        """Return the weights."""

    def check(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Refuse weights by which some task is never drawn."""
        for name, weight in self.weigh(tasks).items():
            if not is_number(weight) or weight <= 0:
                raise CompositionError(
                    f"{type(self).__name__} gives the task {name!r} the weight {weight!r}, so it would never be "
                    "finished; give it a number above 0, or leave the task out."
                )

    def foresee(self, step: int, tasks: Mapping[str, TaskInfo]) -> Mapping[str, float]:
        """Return what ``weigh`` gives, whatever the step."""
        return self.weigh(tasks)

    def begin(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Weigh the tasks once."""
        self._weights = self.weigh(tasks)

    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Return what ``weigh`` gave."""
        return self._weights


def told(names: Mapping[str, Any]) -> str:
    """Return the names for a message."""
    return ", ".join(names) or "none"
