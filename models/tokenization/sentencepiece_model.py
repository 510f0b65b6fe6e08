"""What a SentencePiece model file holds, read without the sentencepiece package. Without Paddle.

The file is a protocol buffer; of its fields only a few matter here.

Sources: sentencepiece ``src/sentencepiece_model.proto``; the encoding of protocol buffers
(protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import attrs

from onion.errors import WeightsError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # how a field is written
PIECES, TRAINER, NORMALIZER = 1, 2, 3  # fields of the model
TEXT, SCORE, KIND = 1, 2, 3  # of a piece
MODEL_TYPE = 3  # of the trainer
CHARSMAP = 2  # of the normalizer
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4  # kinds of pieces
UNIGRAM = 1

Field = tuple[int, "int | bytes"]


@attrs.frozen
class Piece:
    """A piece of the vocabulary.

    Attributes:
        text: with U+2581 for a space.
        score: its log-probability.
        kind: one of ``NORMAL``, ``UNKNOWN``, ``CONTROL``, ``USER_DEFINED``, or another.
    """

    text: str
    score: float
    kind: int


@attrs.frozen
class SentencePieceModel:
    """A unigram model.

    Attributes:
        pieces: by id.
        charsmap: how characters are replaced first, compiled; empty: they are not.
    """

    pieces: tuple[Piece, ...]
    charsmap: bytes

    @property
    def unknown(self) -> int:
        """The id of the unknown piece."""
        return next(index for index, piece in enumerate(self.pieces) if piece.kind == UNKNOWN)


def read_model(path: Path) -> SentencePieceModel:
    """Read a SentencePiece model.

    Raises:
        WeightsError: no such file, a damaged one, or a model of another kind than unigram; the message names the file.
    """
    try:
        return _parsed(path.read_bytes())
    except OSError as error:
        raise WeightsError(f"{path}: cannot read: {error.strerror}") from error
    except (ValueError, IndexError, struct.error, TypeError) as error:
        raise WeightsError(f"{path}: damaged, or no SentencePiece model ({error}); fetch it again") from error


def _parsed(data: bytes) -> SentencePieceModel:
    pieces: list[Piece] = []
    charsmap, model_type = b"", UNIGRAM
    for number, value in _fields(data):
        if number == PIECES:
            pieces.append(_piece(_bytes(value)))
        elif number == TRAINER:
            model_type = int(dict(_fields(_bytes(value))).get(MODEL_TYPE, UNIGRAM))
        elif number == NORMALIZER:
            charsmap = _bytes(dict(_fields(_bytes(value))).get(CHARSMAP, b""))
    if model_type != UNIGRAM:
        raise ValueError(f"its model type is {model_type}, and only unigram models, {UNIGRAM}, are supported")
    if not any(piece.kind == UNKNOWN for piece in pieces):
        raise ValueError("it has no unknown piece")
    return SentencePieceModel(tuple(pieces), charsmap)


def _piece(data: bytes) -> Piece:
    fields = dict(_fields(data))
    score = struct.unpack("<f", _bytes(fields.get(SCORE, bytes(4))))[0]
    return Piece(_bytes(fields[TEXT]).decode("utf-8"), score, int(fields.get(KIND, NORMAL)))


def _fields(data: bytes) -> Iterator[Field]:
    """The fields of a message: number and value; numbers of fixed size as their bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == BYTES:
            size, at = _varint(data, at)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise ValueError(f"a field of the unknown kind {kind}")
        if at + size > len(data):
            raise ValueError("it is cut short")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number written in groups of seven bits, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not data[at - 1] & 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number without an end")


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError(f"a number, {value}, where bytes belong")
    return value
