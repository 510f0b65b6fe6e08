"""Examples that are drawn anew in each pass: what a sampler returns."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.data.source import Indexed
from onion.tasks.pretraining.examples import Example
from onion.tasks.pretraining.sampling.draws import Draws

VERSION = 2
"""Of the way examples are drawn. Raise it when the same corpus, settings and seed give others."""


@attrs.frozen(eq=False)
class DrawnExamples:
    """Examples of which each is a function of its number and of random numbers of (seed, pass, number).

    Attributes:
        lengths: most tokens that each example has in any pass, int ``[examples]``.
        about: identifies corpus and settings.
        seed: of the random numbers.
        draw: makes the example of a number, from 0.
    """

    lengths: NDArray[np.integer]
    about: str
    seed: int
    draw: Callable[[int, Draws], Example]

    @property
    def fingerprint(self) -> str:
        """Identifies the examples: by corpus, settings, and VERSION."""
        return f"{self.about}, drawn as in version {VERSION}"

    def __len__(self) -> int:
        """The number of examples."""
        return len(self.lengths)

    def of_pass(self, pass_id: int) -> Indexed:
        """Return the examples of a pass; the same for the same pass."""
        return _Pass(self, pass_id)


@attrs.frozen(eq=False)
class _Pass:
    examples: DrawnExamples
    pass_id: int

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, number: int) -> Example:
        number = range(len(self))[number]
        return self.examples.draw(number, Draws.of(self.examples.seed, self.pass_id, number))
