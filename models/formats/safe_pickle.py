"""Pickled arrays, read without the unpickler: nothing that a pickle names is imported or called.

Python's unpickler imports and calls what the file names. This reader implements the opcodes of containers and arrays,
and looks up every callable's name in a short table of its own functions; any other name is an error. Whatever a pickle
contains, the result consists of lists, dicts, tuples, strings, bytes, numbers and :class:`PickledArray`. Without
Paddle.

Sources: Python's ``pickletools`` for the opcodes, numpy's ``ndarray.__reduce__`` for the form of arrays.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import attrs
import numpy as np

from onion.errors import WeightsError

ARRAY_TYPES = {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"}
# Longer strings are an array's bytes (protocol 2 has no bytes), which no pickle uses twice.
KEPT_STRING = 1 << 16
# Calls copy their arguments; in total they may copy the bytes that were read, and this many more per opcode.
COPIED_PER_OPCODE = 8

_VALUES = {
    "BINFLOAT", "BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "BINUNICODE8", "SHORT_BINUNICODE",
    "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "BINBYTES8", "SHORT_BINBYTES", "BYTEARRAY8",
}  # fmt: skip
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()


@attrs.frozen(eq=False)
class Name:
    """The name of a callable or class in the pickle, ``module.name``; it is never imported."""

    full: str


@attrs.define(eq=False)
class Described:
    """A numpy dtype in the pickle: a code such as ``f4``, and the byte order."""

    code: str
    order: str = "<"

    def build(self, state: Any) -> None:
        """Set the state: version, byte order, and more that plain numbers do not have."""
        self.order = _plain(state[1], str)


@attrs.define(eq=False)
class PickledArray:
    """A numpy array of the pickle; ``value`` is a read-only view of the bytes in the file."""

    value: np.ndarray | None = None

    def build(self, state: Any) -> None:
        """Set the state: version, shape, dtype, whether in Fortran order, bytes."""
        *_, shape, dtype, fortran, data = state
        self.value = _array(data, dtype, shape, "F" if fortran else "C")


class Dictionary(dict[Any, Any]):
    """A dict whose attributes are ignored (PyTorch's state dicts have ``_metadata``)."""

    def build(self, state: Any) -> None:
        """Ignore the state."""


# The call that creates an ordered dict; its items follow as those of other dicts.
MAPPING: dict[str, Callable[..., Any]] = {"collections.OrderedDict": lambda: Dictionary()}


class PickleReader:
    """Reads one pickle.

    Args:
        path: for messages.
        calls: the callables that are allowed: full name -> a function that creates the value.
        persistent: creates the value of a persistent id; None if there may be none.
        names: names that may be plain arguments (classes, dtypes), besides those of ``calls``.

    Attributes:
        wanted: what the file is read for, for messages.
        keys: allowed types of dict keys. Others could nest so deep that hashing them overflows the stack.
    """

    wanted: str = "weights"
    keys: tuple[type, ...] = (str, int)

    def __init__(
        self,
        path: Path,
        calls: Mapping[str, Callable[..., Any]],
        persistent: Callable[[Any], Any] | None = None,
        names: frozenset[str] = frozenset(),
    ) -> None:
        self.path = path
        self.calls = calls
        self.persistent = persistent
        self.names = names

    def read(self, file: BinaryIO) -> Any:
        """Read a pickle from the file's position, and leave the file behind it.

        Raises:
            WeightsError: it is damaged, or needs other functions; nothing is executed.
        """
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.room = 0
        try:
            for code, argument in self.opcodes(file):
                self.room += COPIED_PER_OPCODE + (len(argument) if isinstance(argument, (str, bytes, bytearray)) else 0)
                if code == "STOP":
                    return self.stack.pop()
                self.step(code, argument)
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, struct.error, Warning) as error:
            # Warning: Python's decoding of escapes warns, which callers may turn into an error.
            raise WeightsError(f"{self.path}: a damaged pickle ({error}); download it again") from error
        except MemoryError as error:
            raise WeightsError(f"{self.path}: a damaged pickle (it claims more bytes than fit into memory)") from error
        raise WeightsError(f"{self.path}: a damaged pickle (it has no end); download it again")

    def opcodes(self, file: BinaryIO) -> Iterator[tuple[str, Any]]:
        """Yield each opcode with its argument, up to the end of the pickle."""
        for opcode, argument, _ in pickletools.genops(file):
            yield opcode.name, argument

    def step(self, code: str, argument: Any) -> None:
        """Execute an opcode; raise a WeightsError if it is not needed for arrays."""
        stack = self.stack
        if code in _VALUES:
            stack.append(argument)
        elif code in _CONSTANTS:
            stack.append(_CONSTANTS[code])
        elif code in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.remember(len(self.memo) if code == "MEMOIZE" else argument)
        elif code in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif code in ("GLOBAL", "STACK_GLOBAL"):
            self._name(code, argument)
        elif code == "REDUCE":
            arguments = stack.pop()
            stack.append(self._call(stack.pop(), arguments))
        elif code == "BUILD":
            state = stack.pop()
            self._count(state if isinstance(state, tuple) else ())
            stack[-1].build(state)
        elif code == "BINPERSID" and self.persistent is not None:
            stack.append(self.persistent(stack.pop()))
        elif code not in ("PROTO", "FRAME"):
            self._container(code, argument)

    def _container(self, code: str, argument: Any) -> None:
        stack = self.stack
        if code == "MARK":
            stack.append(_MARK)
        elif code == "TUPLE":
            stack.append(tuple(self.marked()))
        elif code in _TUPLES:
            stack[-_TUPLES[code] :] = [tuple(stack[-_TUPLES[code] :])]
        elif code == "EMPTY_LIST":
            stack.append([])
        elif code == "EMPTY_DICT":
            stack.append(Dictionary())
        elif code in ("APPEND", "APPENDS"):
            items = [stack.pop()] if code == "APPEND" else self.marked()
            self.top(list).extend(items)
        elif code in ("SETITEM", "SETITEMS"):
            items = [stack.pop(-2), stack.pop()] if code == "SETITEM" else self.marked()
            self.fill(self.top(dict), items)
        else:
            self._refuse(f"{code} {argument}" if isinstance(argument, str) else code)

    def fill(self, target: dict[Any, Any], items: list[Any]) -> None:
        """Put alternating keys and values into a dict."""
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, self.keys):
                raise TypeError(f"a key is a {type(key).__name__}")
            target[key] = value

    def top(self, kind: type) -> Any:
        """Return the top of the stack, which must have a type."""
        if not isinstance(self.stack[-1], kind):
            raise TypeError(f"a {type(self.stack[-1]).__name__} where a {kind.__name__} should be")
        return self.stack[-1]

    def marked(self) -> list[Any]:
        """Take the items behind the last mark, and the mark, from the stack."""
        items = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def remember(self, key: int) -> None:
        """Store the top of the stack under a number."""
        value = self.stack[-1]
        parts = value if isinstance(value, tuple) else (value,)
        long = any(isinstance(part, str) and len(part) > KEPT_STRING for part in parts)
        # Storing them would double the memory of all arrays; None, because MEMOIZE counts the entries.
        self.memo[key] = None if long else value

    def _name(self, code: str, argument: Any) -> None:
        if code == "GLOBAL":
            full = str(argument).replace(" ", ".", 1)
        else:
            name, module = self.stack.pop(), self.stack.pop()
            full = (
                f"{module}.{name}"
                if isinstance(module, str) and isinstance(name, str)
                else "a name that is not a string"
            )
        if full not in self.calls and full not in self.names:
            self._refuse(full)
        self.stack.append(Name(full))

    def _call(self, callee: Any, arguments: Any) -> Any:
        if not isinstance(callee, Name) or callee.full not in self.calls:
            self._refuse(f"a call of {callee.full if isinstance(callee, Name) else type(callee).__name__}")
        self._count(arguments)
        return self.calls[callee.full](*arguments)

    def _count(self, given: Sequence[Any]) -> None:
        """Limit what calls copy: one string or list, used again and again, would fill the memory."""
        self.room -= sum(len(each) for each in given if isinstance(each, (str, list, tuple)))
        if self.room < 0:
            raise ValueError("it makes more copies than a file of its size needs")

    def _refuse(self, what: str) -> NoReturn:
        raise WeightsError(
            f"{self.path}: the pickle needs {what[:80]!r}, which is not allowed for {self.wanted}; nothing was executed"
        )


def numpy_calls() -> dict[str, Callable[..., Any]]:
    """Return the callables in pickles of numpy arrays, by their names in numpy 1 and 2 and Python 2 and 3."""
    calls: dict[str, Callable[..., Any]] = {"numpy.dtype": _dtype, "_codecs.encode": _encode, **MAPPING}
    for package in ("numpy.core", "numpy._core"):
        calls[f"{package}.multiarray._reconstruct"] = lambda *_: PickledArray()
        calls[f"{package}.numeric._frombuffer"] = lambda *given: PickledArray(_array(*given))
    for builtins in ("builtins", "__builtin__"):
        calls[f"{builtins}.tuple"] = lambda items: tuple(_plain(items, list, tuple))
        calls[f"{builtins}.bytes"] = lambda: b""  # an empty array's bytes in protocol 2
    return calls


NUMPY_NAMES = frozenset({"numpy.ndarray"})


def _dtype(code: Any, *_: Any) -> Described:
    if _plain(code, str) not in ARRAY_TYPES:  # others could nest so deep that hashing them overflows the stack
        raise ValueError(f"an array of the type {code[:20]!r}")
    return Described(code)


def _encode(text: Any, encoding: Any) -> bytes:
    if _plain(encoding, str) not in ("latin1", "latin-1"):
        raise ValueError(f"bytes in the encoding {encoding[:20]!r}")
    plain: str = _plain(text, str)
    return plain.encode("latin-1")


def _array(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    """Return the array with these bytes."""
    if isinstance(data, str):  # Python 2
        data = data.encode("latin-1")
    _plain(dtype, Described)
    if dtype.order not in ("<", ">", "|", "="):
        raise ValueError(f"the byte order {dtype.order[:20]!r}")
    if not all(isinstance(size, int) and size >= 0 for size in _plain(shape, tuple)):
        raise ValueError("a shape that has no sizes")
    flat = np.frombuffer(_plain(data, bytes, bytearray), dtype.order + dtype.code)
    array: np.ndarray = flat.reshape(shape, order="F" if order == "F" else "C")
    return array


def _plain(value: Any, *kinds: type) -> Any:
    if not isinstance(value, kinds):
        raise TypeError(f"an unexpected {type(value).__name__}")
    return value
