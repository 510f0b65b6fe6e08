"""Pickled containers of strings and numbers, written by Python 2 or 3 in any protocol; nothing is executed.

In addition to :mod:`onion.models.formats.safe_pickle`: sets, and the text opcodes of protocols 0 and 1. Strings of
Python 2 are bytes, decoded here as UTF-8. Without Paddle.
"""

from __future__ import annotations

import codecs
import pickletools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from onion.models.formats.paths import reading
from onion.models.formats.safe_pickle import MAPPING, Dictionary, PickleReader

OPCODES = {opcode.code: opcode for opcode in pickletools.opcodes}

PLAIN = (str, bytes, int, float, type(None))  # elements of sets and keys of dicts; others may nest without limit
_TEXTUAL = {"INT", "LONG", "FLOAT", "UNICODE"}
_BYTES_OF_PYTHON_2 = {"STRING", "BINSTRING", "SHORT_BINSTRING"}


def read_containers(path: Path) -> Any:
    """Read a file with one pickle of lists, tuples, dicts, sets, frozensets, strings, bytes, numbers and None.

    Raises:
        WeightsError: the file is missing or damaged, or needs other functions (nothing is executed).
    """
    with reading(path), path.open("rb") as file:
        return ContainerReader(path).read(file)


class ContainerReader(PickleReader):
    """Reads one pickle of containers.

    Args:
        path: for messages.
    """

    wanted = "lists of words"
    keys = PLAIN

    def __init__(self, path: Path) -> None:
        super().__init__(path, {**MAPPING, **_set_calls()})

    def opcodes(self, file: BinaryIO) -> Iterator[tuple[str, Any]]:
        """Yield opcodes, with the bytes of STRING, for which pickletools accepts ASCII only."""
        while code := file.read(1):
            opcode = OPCODES.get(code.decode("latin-1"))
            if opcode is None:
                raise ValueError(f"{code!r} is not an opcode")
            if opcode.name == "STRING":
                yield opcode.name, _quoted(file.readline())
            else:
                yield opcode.name, None if opcode.arg is None else opcode.arg.reader(file)

    def step(self, code: str, argument: Any) -> None:
        """Handle sets, and the opcodes of protocols 0 and 1."""
        stack = self.stack
        if code in _BYTES_OF_PYTHON_2:
            stack.append(argument.encode("latin-1").decode("utf-8"))
        elif code in _TEXTUAL:
            stack.append(argument)
        elif code == "PUT":
            self.remember(argument)
        elif code == "GET":
            stack.append(self.memo[argument])
        elif code == "LIST":
            stack.append(self.marked())
        elif code == "DICT":
            items = self.marked()
            stack.append(Dictionary())
            self.fill(stack[-1], items)
        elif code == "EMPTY_SET":
            stack.append(set())
        elif code == "ADDITEMS":
            items = self.marked()
            self.top(set).update(_hashable(items))
        elif code == "FROZENSET":
            stack.append(frozenset(_hashable(self.marked())))
        else:
            super().step(code, argument)


def _set_calls() -> dict[str, Callable[..., Any]]:
    """Return the functions for sets, which protocols before 4 write as calls with a list."""
    sets = {"set": set, "frozenset": frozenset}
    return {
        f"{module}.{name}": lambda items=(), kind=kind: kind(_items(items))
        for module in ("builtins", "__builtin__")
        for name, kind in sets.items()
    }


def _items(items: Any) -> list[Any]:
    if not isinstance(items, (list, tuple)):
        raise TypeError(f"a set of a {type(items).__name__}")
    return _hashable(list(items))


def _quoted(line: bytes) -> str:
    """Return the bytes of a quoted string, each as the character with that number."""
    text = line.rstrip(b"\n")
    if not line.endswith(b"\n") or len(text) < 2 or text[:1] not in (b"'", b'"') or text[-1:] != text[:1]:
        raise ValueError("a string without its quotation marks")
    return codecs.escape_decode(text[1:-1])[0].decode("latin-1")


def _hashable(items: list[Any]) -> list[Any]:
    odd = next((item for item in items if not isinstance(item, PLAIN)), None)
    if odd is not None:
        raise TypeError(f"a set holds a {type(odd).__name__}")
    return items
