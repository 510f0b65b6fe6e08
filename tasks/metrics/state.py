"""The state of metrics that count or collect during a pass."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np


class StatefulMetric:
    """A metric whose state is a few named values; it can be saved in mid-pass.

    Args:
        initial: the values before the first batch, numbers or arrays, by the names of the attributes.
    """

    def __init__(self, **initial: Any) -> None:
        self._initial = initial
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        vars(self).update({name: deepcopy(value) for name, value in self._initial.items()})

    def state_dict(self) -> dict[str, Any]:
        """Return the values."""
        return {name: getattr(self, name) for name in self._initial}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the values."""
        for name, initial in self._initial.items():
            kind = np.array if isinstance(initial, np.ndarray) else type(initial)
            setattr(self, name, kind(saved[name]))
