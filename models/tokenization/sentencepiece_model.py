"""The content of a SentencePiece model file, read without the sentencepiece package. Without Paddle.

Source: sentencepiece ``src/sentencepiece_model.proto``.
"""

from __future__ import annotations

import struct
from pathlib import Path

import attrs

from onion.errors import WeightsError
from onion.models.formats.paths import reading
from onion.models.formats.protobuf import fields

PIECES, TRAINER, NORMALIZER = 1, 2, 3  # fields of the model
TEXT, SCORE, KIND = 1, 2, 3  # of a piece
MODEL_TYPE = 3  # of the trainer
CHARSMAP = 2  # of the normalizer
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4  # kinds of pieces
UNIGRAM = 1


@attrs.frozen
class Piece:
    """A piece of the vocabulary.

    Attributes:
        text: with U+2581 for a space.
        score: its log-probability.
        kind: ``NORMAL``, ``UNKNOWN``, ``CONTROL``, ``USER_DEFINED``, or another.
    """

    text: str
    score: float
    kind: int


@attrs.frozen
class SentencePieceModel:
    """A unigram model.

    Attributes:
        pieces: by id.
        charsmap: the compiled table of character replacements; may be empty.
    """

    pieces: tuple[Piece, ...]
    charsmap: bytes

    @property
    def unknown(self) -> int:
        """The id of the unknown piece."""
        return next(index for index, piece in enumerate(self.pieces) if piece.kind == UNKNOWN)


def read_model(path: Path) -> SentencePieceModel:
    """Read a SentencePiece model; raise a WeightsError that names the file if it is damaged or not a unigram model."""
    with reading(path):
        data = path.read_bytes()
    try:
        return _parsed(data)
    except (ValueError, LookupError, struct.error, TypeError) as error:
        raise WeightsError(f"{path}: damaged, or not a SentencePiece model ({error}); download it again") from error


def _parsed(data: bytes) -> SentencePieceModel:
    pieces: list[Piece] = []
    charsmap, model_type = b"", UNIGRAM
    for number, value in fields(data):
        if number == PIECES:
            pieces.append(_piece(_bytes(value)))
        elif number == TRAINER:
            model_type = int(dict(fields(_bytes(value))).get(MODEL_TYPE, UNIGRAM))
        elif number == NORMALIZER:
            charsmap = _bytes(dict(fields(_bytes(value))).get(CHARSMAP, b""))
    if model_type != UNIGRAM:
        raise ValueError(f"its model type is {model_type}, and only unigram models, {UNIGRAM}, are supported")
    if not any(piece.kind == UNKNOWN for piece in pieces):
        raise ValueError("it has no unknown piece")
    return SentencePieceModel(tuple(pieces), charsmap)


def _piece(data: bytes) -> Piece:
    found = dict(fields(data))
    score = struct.unpack("<f", _bytes(found.get(SCORE, bytes(4))))[0]
    return Piece(_bytes(found[TEXT]).decode("utf-8"), score, int(found.get(KIND, NORMAL)))


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError(f"a number, {value}, where bytes belong")
    return value
