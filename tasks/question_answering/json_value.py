"""`Place`: a value of a JSON file that knows where it stands, so that whatever is wrong with it can be told."""

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
        path: the way to the value, as in ``data[3].paragraphs[0]``; empty for the whole file.
        value: what JSON says.
    """

    file: Path
    path: str
    value: Any

    def __str__(self) -> str:
        return f"{self.file}: {self.path}" if self.path else str(self.file)

    def __contains__(self, name: str) -> bool:
        return isinstance(self.value, dict) and name in self.value

    def __getitem__(self, name: str) -> Place:
        """Go to a field of an object.

        Raises:
            DataError: this is no object, or has no such field.
        """
        if not isinstance(self.value, dict):
            raise self._unlike(f"an object with {name!r}")
        if name not in self.value:
            raise self.error(f"there is no {name!r} here, only {listed(self.value)}")
        return Place(self.file, f"{self.path}.{name}" if self.path else name, self.value[name])

    def items(self) -> Iterator[Place]:
        """Give the items of a list.

        Raises:
            DataError: this is none.
        """
        if not isinstance(self.value, list):
            raise self._unlike("a list")
        for number, value in enumerate(self.value):
            yield Place(self.file, f"{self.path}[{number}]", value)

    def text(self) -> str:
        """Return a value that has to be a text.

        Raises:
            DataError: it is none, or cannot be encoded.
        """
        if not isinstance(self.value, str):
            raise self._unlike("a text")
        if holds_half_a_character(self.value):
            raise self.error("holds half of a surrogate pair (\\ud800 to \\udfff); mend the text")
        return self.value

    def whole(self) -> int:
        """Return a value that has to be a whole number.

        Raises:
            DataError: it is none.
        """
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self._unlike("a whole number")
        return self.value

    def word(self) -> str:
        """Return a value that is a text or a whole number; ``2`` is ``"2"``.

        Raises:
            DataError: it is neither.
        """
        return self.text() if isinstance(self.value, str) else str(self.whole())

    def truth(self) -> bool:
        """Return a value that has to be true or false.

        Raises:
            DataError: it is neither.
        """
        if not isinstance(self.value, bool):
            raise self._unlike("true or false")
        return self.value

    def called(self, name: str) -> Place:
        """Return the place with a name behind its path, for messages."""
        return Place(self.file, f"{self.path} ({name})", self.value)

    def error(self, what: str) -> DataError:
        """Return the error to raise when this value is wrong: ``file: path: what``."""
        return DataError(f"{self}: {what}")

    def _unlike(self, wanted: str) -> DataError:
        try:
            text = json.dumps(self.value, ensure_ascii=True)
        except (RecursionError, ValueError):  # lists a thousand deep
            text = shown(self.value)
        return self.error(f"is {text if len(text) <= LONGEST else text[: LONGEST - 3] + '...'}, not {wanted}")


def read_json(path: str | Path, advice: str = "mend the file") -> Place:
    """Read a JSON file as a whole.

    Args:
        path: the file.
        advice: what to do where it is no JSON.

    Raises:
        DataError: it cannot be read, is not UTF-8, or is broken; the line is named.
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
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets a thousand deep
        raise DataError(f"{path}: JSON that Python does not read ({error}); write it plainly") from None
