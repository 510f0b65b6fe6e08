"""Samples as sources keep them: a line of JSON each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from onion.errors import DataError


def texts_of(samples: Iterable[Any]) -> list[str]:
    """Return each sample as one line of JSON that UTF-8 can write.

    Raises:
        DataError: one of them is no JSON value; NaN and infinities are none.
    """
    return [_text(number, sample) for number, sample in enumerate(samples, 1)]


def value_of(text: str, where: str) -> Any:
    """Return the sample that a line of JSON is.

    Raises:
        DataError: it is none; ``where`` begins the message.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{where}: what is kept there is not JSON ({error}); it is damaged, put it back as it was."
        ) from None


def _text(number: int, sample: Any) -> str:
    try:
        text = json.dumps(sample, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        if not _fits_utf8(text):
            text = json.dumps(sample, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"sample {number} of this write is no JSON value ({error}); make it of dicts, lists, texts, finite "
            "numbers, true, false and null. Nothing was taken."
        ) from None
    return text


def _fits_utf8(text: str) -> bool:
    """Tell whether there is no half of a surrogate pair in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
