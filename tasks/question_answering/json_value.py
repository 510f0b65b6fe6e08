"""`Place`: a value of a JSON file with its place, for error messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from onion.data.opening import opened
from onion.data.table import at
from onion.errors import DataError
from onion.messages import LONGEST, listed, shown
from onion.tasks.data.rows import holds_half_a_character


@attrs.frozen
class Place:
    """A value of a JSON file.

    Attributes:
        file: the file.
        path: of the value, as in ``data[3].paragraphs[0]``; empty for the whole file.
        value: the value.

    Raises:
        DataError: by the methods, if the value has another type; the message has its place.
    """

    file: Path
    path: str
    value: Any

    def __str__(self) -> str:
        return f"{self.file}: {self.path}" if self.path else str(self.file)

    def __contains__(self, name: str) -> bool:
        return isinstance(self.value, dict) and name in self.value

    def __getitem__(self, name: str) -> Place:
        """Return a field of an object."""
        if not isinstance(self.value, dict):
            raise self._unlike(f"an object with {name!r}")
        if name not in self.value:
            raise self.error(f"there is no {name!r} here, only {listed(self.value)}")
        return Place(self.file, f"{self.path}.{name}" if self.path else name, self.value[name])

    def items(self) -> Iterator[Place]:
        """Yield the items of a list."""
        if not isinstance(self.value, list):
            raise self._unlike("a list")
        for number, value in enumerate(self.value):
            yield Place(self.file, f"{self.path}[{number}]", value)

    def text(self) -> str:
        """Return a string."""
        if not isinstance(self.value, str):
            raise self._unlike("a string")
        if holds_half_a_character(self.value):
            raise self.error("has an unpaired surrogate (\\ud800 to \\udfff); correct the text")
        return self.value

    def whole(self) -> int:
        """Return an integer."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self._unlike("an integer")
        return self.value

    def word(self) -> str:
        """Return a string, or an integer as a string."""
        return self.text() if isinstance(self.value, str) else str(self.whole())

    def truth(self) -> bool:
        """Return a boolean."""
        if not isinstance(self.value, bool):
            raise self._unlike("true or false")
        return self.value

    def called(self, name: str) -> Place:
        """Return the value with a name after its path, for messages."""
        return Place(self.file, f"{self.path} ({name})", self.value)

    def error(self, what: str) -> DataError:
        """Return an error with the place of the value: ``file: path: what``."""
        return DataError(f"{self}: {what}")

    def _unlike(self, wanted: str) -> DataError:
        try:
            text = json.dumps(self.value, ensure_ascii=True)
        except (RecursionError, ValueError):  # deeply nested lists
            text = shown(self.value)
        return self.error(f"is {text if len(text) <= LONGEST else text[: LONGEST - 3] + '...'}, not {wanted}")


def read_json(path: str | Path, advice: str = "correct the file") -> Place:
    """Read a JSON file as a whole.

    Args:
        path: the file.
        advice: what to do about invalid JSON.

    Raises:
        DataError: it cannot be read, is not UTF-8, or is invalid; the line is named.
    """
    path = Path(path)
    with opened(path) as file:
        raw = file.read()
    try:
        return Place(path, "", json.loads(raw.decode().removeprefix("\ufeff")))
    except UnicodeDecodeError as error:
        line = 1 + raw.count(b"\n", 0, error.start)
        raise at(path, line, f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise at(path, error.lineno, f"broken JSON at column {error.colno} ({error.msg}); {advice}") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, deeply nested brackets
        raise DataError(f"{path}: JSON that Python does not read ({error}); write it plainly") from None
