"""What was recorded in a run besides its metrics: numbers, histograms and pictures, until they are written down."""

from __future__ import annotations

from collections.abc import Collection
from io import BytesIO
from typing import Any, SupportsFloat, TypeAlias

import attrs
import numpy as np

from onion.errors import OnionError

BINS = 64
CHANNELS = (1, 3, 4)


@attrs.frozen(eq=False)
class Histogram:
    """How many of some numbers are in each of some intervals.

    Attributes:
        counts: int64 [bins].
        edges: where the intervals begin and, last, where the last one ends: float64 [bins + 1].
        minimum: the smallest number.
        maximum: the largest.
        sum: of the numbers.
        sum_of_squares: of the numbers.
    """

    counts: np.ndarray
    edges: np.ndarray
    minimum: float
    maximum: float
    sum: float
    sum_of_squares: float

    @classmethod
    def of(cls, values: Any) -> Histogram | None:
        """Count values, in bins of equal width; None: none of them is finite."""
        numbers = _array(values).astype(np.float64).ravel()
        numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            return None
        counts, edges = np.histogram(numbers, BINS)
        limits = float(numbers.min()), float(numbers.max())
        return cls(counts, edges, *limits, float(numbers.sum()), float(numbers @ numbers))


@attrs.frozen(eq=False)
class Image:
    """A picture.

    Attributes:
        pixels: uint8 [height, width, channels]; 1 channel is gray, 3 are red, green and blue, a 4th is opacity.
    """

    pixels: np.ndarray

    @classmethod
    def of(cls, pixels: Any) -> Image:
        """Convert a picture.

        Raises:
            OnionError: its shape or dtype is not one of a picture.
        """
        array = _array(pixels)
        array = array[..., None] if array.ndim == 2 else array
        right = array.ndim == 3 and array.shape[2] in CHANNELS and array.size
        if not right or not (array.dtype == np.uint8 or array.dtype.kind == "f"):
            raise OnionError(
                f"record_image: a picture is [height, width] or [height, width, 1, 3 or 4 channels] of uint8 or floats "
                f"from 0 to 1; got {array.dtype} {list(np.shape(pixels))}. If the channels come first, transpose it."
            )
        if array.dtype.kind == "f":
            array = np.rint(255 * np.clip(np.nan_to_num(array), 0, 1))
        return cls(array.astype(np.uint8))

    def picture(self) -> Any:
        """Return it as an image of PIL."""
        from PIL.Image import fromarray

        return fromarray(self.pixels[..., 0] if self.pixels.shape[2] == 1 else self.pixels)

    def png(self) -> bytes:
        """Return it as the content of a PNG file."""
        content = BytesIO()
        self.picture().save(content, format="PNG")
        return content.getvalue()


Value: TypeAlias = float | Histogram | Image
Kinds: TypeAlias = Collection[type]
"""Some of float, Histogram and Image."""


class Records:
    """The latest value of everything that was recorded in a run.

    Several items read it, each from where it has read to.

    Args:
        kinds: of the values that any of them writes down; others are not kept.
    """

    def __init__(self, kinds: Kinds = ()) -> None:
        self.kinds = set(kinds)
        self.count = 0
        """How many values were recorded."""
        self._latest: dict[str, tuple[int, Value]] = {}

    def empty(self) -> Records:
        """Return the records of an inner run: the same kinds, and none yet."""
        return Records(self.kinds)

    def scalar(self, name: str, value: SupportsFloat) -> None:
        """Record a number."""
        if float in self.kinds:
            self._add(name, float(_array(value).item()))

    def histogram(self, name: str, values: Any) -> None:
        """Record how values are distributed, if there are any."""
        if Histogram in self.kinds and values is not None and (counted := Histogram.of(values)) is not None:
            self._add(name, counted)

    def image(self, name: str, pixels: Any) -> None:
        """Record a picture."""
        if Image in self.kinds:
            self._add(name, Image.of(pixels))

    def take(self, others: Records, prefix: str) -> None:
        """Record what an inner run has recorded, with a prefix to its names."""
        for name, value in others.since(0, self.kinds).items():
            self._add(f"{prefix}{name}", value)

    def since(self, count: int, kinds: Kinds) -> dict[str, Value]:
        """Return the values of some kinds that were recorded when there were ``count`` already."""
        return {
            name: value
            for name, (number, value) in self._latest.items()
            if number > count and isinstance(value, tuple(kinds))
        }

    def _add(self, name: str, value: Value) -> None:
        self.count += 1
        self._latest[name] = self.count, value


def _array(values: Any) -> np.ndarray:
    """Return values as an array; Paddle gives its bfloat16 to numpy as uint16, so that goes by float32."""
    if "bfloat16" in str(getattr(values, "dtype", "")):
        values = values.astype("float32")
    return values.numpy() if hasattr(values, "numpy") else np.asarray(values)
