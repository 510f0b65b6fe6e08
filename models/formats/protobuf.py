"""Messages of protocol buffers, read without the protobuf package. Without Paddle.

Source: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types

Field = tuple[int, "int | bytes"]


def fields(data: bytes) -> Iterator[Field]:
    """Yield the number and value of each field of a message; fixed-size numbers are given as their bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = varint(data, at)
            yield number, value
            continue
        if kind == BYTES:
            size, at = varint(data, at)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise ValueError(f"a field of the unknown wire type {kind}")
        if at + size > len(data):
            raise ValueError("cut short")
        yield number, data[at : at + size]
        at += size


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the integer that starts at an offset, seven bits a byte and the lowest first, and the offset behind it."""
    value = shift = 0
    while at < len(data) and shift <= 63:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("cut short")
