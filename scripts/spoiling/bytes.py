"""Ways to spoil a file that know nothing of what it means: (draw, content) -> content."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from random import Random

Spoil = Callable[[Random, bytes], bytes]

ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-7", "latin-1", "gb18030", "cp1252", "shift-jis")
LINE_ENDS = (b"\r", b"\r\n", b"\n\n", b"\n\r", b"\x0b", b"\x0c", b"\xc2\x85", b"\xe2\x80\xa8", b"\0")
ESCAPES = (b"\x1b[2J", b"\x1b]0;owned\x07", b"\x08" * 9, b"\xc2\x9b31m", b"\xe2\x80\xae", b"\x7f", b"\r")
BOM = b"\xef\xbb\xbf"
HEADS = (
    b"\x89PNG\r\n\x1a\n",
    b"PK\x03\x04",
    b"%PDF-1.7\n",
    b"\x7fELF",
    b"\x80\x04\x95",
    b"<html>",
    b"#!/bin/sh\nexit\n",
)
LONG = 1 << 18
ENDLESS = (1 << 26) + 1
"""Bytes of a line that is longer than any may be."""


def cut(draw: Random, content: bytes) -> bytes:
    """Lose the end, anywhere."""
    return content[: draw.randrange(len(content))]


def flipped(draw: Random, content: bytes) -> bytes:
    """Change some bits."""
    found = bytearray(content)
    for _ in range(draw.randrange(1, 9)):
        found[draw.randrange(len(found))] ^= 1 << draw.randrange(8)
    return bytes(found)


def encoded(draw: Random, content: bytes) -> bytes:
    """Write it in another encoding, with a letter that tells them apart."""
    text = content.decode(errors="replace").replace("a", "über", 3)
    return text.encode(draw.choice(ENCODINGS), errors="replace")


def marked(draw: Random, content: bytes) -> bytes:
    """Put byte order marks in front, or before any line."""
    lines = content.splitlines(keepends=True)
    for _ in range(draw.randrange(1, 4)):
        place = draw.choice([0, draw.randrange(len(lines))])
        lines[place] = BOM * draw.randrange(1, 3) + lines[place]
    return b"".join(lines)


def inserted(draw: Random, content: bytes) -> bytes:
    """Put in what a terminal obeys, or bytes that no text has."""
    for _ in range(draw.randrange(1, 6)):
        place = draw.randrange(len(content))
        content = content[:place] + draw.choice([*ESCAPES, b"\0", b"\xff", b"\xed\xa0\xbd"]) + content[place:]
    return content


def ended_otherwise(draw: Random, content: bytes) -> bytes:
    """End lines in other ways, not all in the same."""
    ends = draw.sample(LINE_ENDS, 2)
    return b"".join(line + draw.choice([b"\n", *ends]) for line in content.splitlines())


def without_line_ends(draw: Random, content: bytes) -> bytes:
    """Leave no line end."""
    return content.replace(b"\n", b" ")


def long_line(draw: Random, content: bytes) -> bytes:
    """Make a line, or the last one, very long."""
    piece = draw.choice([b"a", b"film ", b"\t", b",", b'"', b"[", b" ", "中".encode(), b"e\xcc\x81", b"{"])
    place = draw.choice([draw.randrange(len(content)), len(content)])
    return content[:place] + piece * (LONG // len(piece)) + content[place:]


def endless_line(draw: Random, content: bytes) -> bytes:
    """Add a line that is longer than any may be."""
    return content + bytes([draw.choice(b"a[ ")]) * ENDLESS


def doubled(draw: Random, content: bytes) -> bytes:
    """Write the file twice, header and all."""
    return content * 2


def shuffled(draw: Random, content: bytes) -> bytes:
    """Put the lines in any order, the header among them."""
    lines = content.splitlines(keepends=True)
    draw.shuffle(lines)
    return b"".join(lines)


def blank_lines(draw: Random, content: bytes) -> bytes:
    """Put blank lines between others."""
    lines = content.splitlines(keepends=True)
    for _ in range(draw.randrange(1, 4)):
        lines.insert(draw.randrange(len(lines)), draw.choice([b"\n", b" \n", b"\t\n", b"\r\n"]))
    return b"".join(lines)


def noise(draw: Random, content: bytes) -> bytes:
    """Be of any bytes."""
    return draw.randbytes(draw.choice([1, 10, 1000, 100_000]))


def another_kind(draw: Random, content: bytes) -> bytes:
    """Be a file of another kind."""
    packed = [gzip.compress(content, mtime=0), zlib.compress(content)]
    return draw.choice([*packed, *(head + content for head in HEADS)])


def nothing(draw: Random, content: bytes) -> bytes:
    """Hold nothing, or nothing but white space."""
    return draw.choice([b"", b"\n", b" ", b"\r\n\r\n", BOM, b"\t\t\n", b"\0"])


def first_line(draw: Random, content: bytes) -> bytes:
    """Hold the first line only."""
    return content.splitlines(keepends=True)[0]


WAYS: tuple[Spoil, ...] = (
    cut, flipped, encoded, marked, inserted, ended_otherwise, without_line_ends, long_line, doubled, shuffled,
    blank_lines, noise, another_kind, nothing, first_line,
)  # fmt: skip
