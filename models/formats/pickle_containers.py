"""Pickled containers of strings and numbers, as Python 2 and 3 write them in every protocol; nothing is ever run.

What :mod:`onion.models.formats.safe_pickle` reads, and more: sets, and the opcodes of protocols 0 and 1, which are
text. Strings of Python 2 are bytes; here they are UTF-8. Without Paddle.
"""

from __future__ import annotations

import codecs
import pickletools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from onion.errors import WeightsError
from onion.models.formats.safe_pickle import MAPPING, Dictionary, PickleReader

OPCODES = {opcode.code: opcode for opcode in pickletools.opcodes}

PLAIN = (str, bytes, int, float, type(None))  # what a set or the keys of a dict may hold: others may nest without end
_TEXTUAL = {"INT", "LONG", "FLOAT", "UNICODE"}
_BYTES_OF_PYTHON_2 = {"STRING", "BINSTRING", "SHORT_BINSTRING"}


def read_containers(path: Path) -> Any:
    """Read a file with one pickle.

    Returns:
        What it holds: lists, tuples, dicts, sets, frozensets, strings, bytes, numbers, None.

    Raises:
        WeightsError: no such file; it is damaged, or asks for anything else (nothing was executed).
    """
    try:
        with path.open("rb") as file:
            return ContainerReader(path).read(file)
    except OSError as error:
        raise WeightsError(f"{path}: cannot read: {error.strerror}") from error


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
        """The same, but of STRING the bytes: pickletools takes only ASCII there."""
        while code := file.read(1):
            opcode = OPCODES.get(code.decode("latin-1"))
            if opcode is None:
                raise ValueError(f"{code!r} is no opcode")
            if opcode.name == "STRING":
                yield opcode.name, _quoted(file.readline())
            else:
                yield opcode.name, None if opcode.arg is None else opcode.arg.reader(file)

    def step(self, code: str, argument: Any) -> None:
        """Sets, and what protocols 0 and 1 write."""
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
    """How sets are written before protocol 4: as calls with a list."""
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
    """The bytes of a quoted string, each as the character of that number."""
    text = line.rstrip(b"\n")
    if not line.endswith(b"\n") or len(text) < 2 or text[:1] not in (b"'", b'"') or text[-1:] != text[:1]:
        raise ValueError("a string without its quotation marks")
    return codecs.escape_decode(text[1:-1])[0].decode("latin-1")


def _hashable(items: list[Any]) -> list[Any]:
    odd = next((item for item in items if not isinstance(item, PLAIN)), None)
    if odd is not None:
        raise TypeError(f"a set holds a {type(odd).__name__}")
    return items
