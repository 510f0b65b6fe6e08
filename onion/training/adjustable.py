"""Settings of items that may be changed while a run goes on."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from onion.errors import OnionError
from onion.validation import is_number, is_whole


@attrs.frozen
class Adjustable:
    """A number that may be changed from outside, between two batches: an integer if ``whole``.

    An item's method ``adjustable()`` returns its own. A value that was set is in the item's ``state_dict``, so that a
    resumed run has it too. ``low`` and ``high`` are accepted.
    """

    low: float
    high: float
    get: Callable[[], float]
    set: Callable[[float], None]
    whole: bool = False

    def refuse(self, name: str, value: object) -> None:
        """Raise OnionError for a value that is not accepted."""
        fits = is_whole(value) if self.whole else is_number(value)
        if not (fits and self.low <= value <= self.high):  # type: ignore[operator]
            kind = "an integer" if self.whole else "a number"
            raise OnionError(f"{name} must be {kind} from {self.low:g} to {self.high:g}, got {value!r}.")
