"""ERNIE tiny's tokenizer: words of a dictionary, then SentencePiece. Without Paddle.

A text is lowercased letter by letter and split into words by the dictionary; words that are a space are dropped, the
others joined by spaces and tokenized by SentencePiece. Special tokens in a text stay whole; the space around them is
dropped.

Source: PaddleNLP 2.8.1, ``ErnieTinyTokenizer`` in ``transformers/ernie/tokenizer.py``, ``tokenizer_utils.py``. It
lowercases even if ``do_lower_case`` is false, but after the dictionary; here, as in static-graph ERNIE's
``WSSPTokenizer``, capitals are kept then.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tokenizers
from tokenizers import models, processors

from onion.errors import DataError, WeightsError
from onion.models.formats.paths import naming, reading
from onion.models.tokenization.ernie_tiny_dictionary import WordDictionary, read_dictionary
from onion.models.tokenization.pre_tokenizer import Prepared, Texts, regroup
from onion.models.tokenization.vocabulary import read_vocab, vocab_bytes

MODEL_FILE, WORDS_FILE, VOCAB_FILE = "spm_cased_simp_sampled.model", "dict.wordseg.pickle", "vocab.txt"
TOKENIZER_CLASS = "ErnieTinyTokenizer"  # in tokenizer_config.json
HALF_PAIR = re.compile("[\ud800-\udfff]")
MARK = "\u2581"  # SentencePiece's space
Row = tuple[int, int, int]  # begin, end, number of the word


class Part(NamedTuple):
    """A special token, or the text between two, and its begin in the text."""

    begin: int
    text: str
    special: bool


class Words(NamedTuple):
    """Words of a text, joined by spaces, and their places.

    Attributes:
        joined: the words, joined by spaces.
        starts: the begin of each in ``joined``.
        begins: the begin of each in the text.
        first: the number of the first one in the text.
    """

    joined: str
    starts: list[int]
    begins: list[int]
    first: int

    @classmethod
    def of(cls, words: Sequence[str], begin: int, first: int) -> Words:
        """Return consecutive words of a text from ``begin`` on, without those that are a space."""
        begins = accumulate(map(len, words), initial=begin)
        kept = [(word, at) for word, at in zip(words, begins, strict=False) if word != " "]
        starts = accumulate((len(word) + 1 for word, _ in kept[:-1]), initial=0)
        return cls(" ".join(word for word, _ in kept), list(starts) if kept else [], [at for _, at in kept], first)

    def row(self, begin: int, end: int) -> Row:
        """Convert a span of ``joined`` to a span of the text and the number of the word in which it begins."""
        word, place = self._place(begin)
        return place, self._place(end - 1)[1] + 1 if begin < end else place, self.first + word

    def _place(self, at: int) -> tuple[int, int]:
        word = bisect_right(self.starts, at) - 1
        return word, self.begins[word] + at - self.starts[word]


class SentencePieces:
    """Splits texts into pieces, for a tokenizer of the library that only looks them up.

    Args:
        model: the bytes of a SentencePiece model.
        words: the dictionary.
        vocab: piece -> id; for saving.
        special: special tokens, which stay whole in a text.
        lower: whether texts are lowercased.

    Raises:
        WeightsError: ``sentencepiece`` is not installed, or ``model`` is damaged.
    """

    def __init__(
        self, model: bytes, words: WordDictionary, vocab: Mapping[str, int], special: Collection[str], lower: bool
    ) -> None:
        self.settings: Mapping[str, Any] = {"tokenizer_class": TOKENIZER_CLASS}
        self._model = model
        self._processor = _processor(model)
        self._words = words
        self._vocab = vocab
        self._lower = lower
        longest_first = sorted(special, key=len, reverse=True)
        self._special = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")

    def __call__(self, texts: Texts, pre_split: bool, offsets: bool) -> Prepared:
        """Split texts into pieces; given words are split independently."""
        flat: list[Any] = [word for text in texts for word in text] if pre_split else list(texts)
        try:
            pieces, places = self._with_places(flat) if offsets else (self._pieces(flat), None)
        except Exception as error:  # its class depends on the library's version
            raise _explained(texts, pre_split, error) from error
        if not pre_split:
            return Prepared(pieces, True, places)
        joined = [[piece for word in words for piece in word] for words in regroup(pieces, texts)]
        return Prepared(joined, True, None if places is None else _numbered(places, texts))

    def files(self) -> Mapping[str, bytes]:
        """Return the model, the dictionary and the vocabulary, with PaddleNLP's names."""
        words, vocab = self._words.to_bytes(), vocab_bytes(self._vocab)
        return {MODEL_FILE: self._model, WORDS_FILE: words, VOCAB_FILE: vocab}

    def _pieces(self, texts: Sequence[str]) -> list[list[str]]:
        parts = [list(self._parts(self._lowered(text))) for text in texts]
        cut = self._words.cut
        joined = [
            " ".join([word for word in cut(part.text) if word != " "])
            for of_text in parts
            for part in of_text
            if not part.special
        ]
        found = iter(self._processor.encode(joined, out_type=str))
        return [
            [piece for part in of_text for piece in ([part.text] if part.special else next(found))] for of_text in parts
        ]

    def _with_places(self, texts: Sequence[str]) -> tuple[list[list[str]], list[np.ndarray]]:
        """Return the pieces of each text, and int64 [pieces, 3] of each: begin, end, number of the word."""
        lowered = [self._lowered(text) for text in texts]
        words = [list(self._numbered_words(text)) for text in lowered]
        joined = [one.joined for of_text in words for one in of_text if isinstance(one, Words)]
        # sentencepiece 0.2.2 does not accept an empty list here.
        found = iter(self._processor.encode(joined, out_type="offset_mapping") if joined else [])
        pieces, places = [], []
        for text, low, of_text in zip(texts, lowered, words, strict=True):
            of_pieces: list[str] = []
            of_places: list[Row] = []
            for one in of_text:
                if isinstance(one, Words):
                    mapping = next(found)
                    of_pieces += mapping["pieces"]
                    of_places += _rows(one, mapping["pieces"], mapping["offsets"])
                else:
                    of_pieces.append(low[one[0] : one[1]])
                    of_places.append(one)
            pieces.append(of_pieces)
            places.append(self._unlowered(text, np.array(of_places, np.int64).reshape(-1, 3), len(low)))
        return pieces, places

    def _lowered(self, text: str) -> str:
        """Lowercase a text letter by letter, also a final sigma."""
        if not self._lower:
            return text
        parts = self._special.split(text)  # every second one is a special token
        return "".join(part if i % 2 else part.replace("Σ", "σ").lower() for i, part in enumerate(parts))

    def _unlowered(self, text: str, places: np.ndarray, length: int) -> np.ndarray:
        """Convert places in a lowercased text to places in the text: İ becomes two characters."""
        if length == len(text):
            return places
        parts = enumerate(self._special.split(text))
        lengths = [1 if i % 2 else len(character.lower()) for i, part in parts for character in part]
        origin = np.append(np.repeat(np.arange(len(text)), lengths), len(text))
        begin, end = origin[places[:, 0]], origin[places[:, 1] - 1] + 1
        return np.stack([begin, np.where(places[:, 0] == places[:, 1], begin, end), places[:, 2]], axis=1)

    def _parts(self, text: str) -> Iterator[Part]:
        found = self._special.split(text)
        begin = 0
        for i, part in enumerate(found):
            if i % 2:
                yield Part(begin, part, special=True)
            else:
                right = part.lstrip() if i else part
                kept = right.rstrip() if i < len(found) - 1 else right
                if kept:
                    yield Part(begin + len(part) - len(right), kept, special=False)
            begin += len(part)

    def _numbered_words(self, text: str) -> Iterator[Words | Row]:
        """Yield the words of each part; for a special token, which is a word too, its place."""
        number = 0
        for part in self._parts(text):
            if part.special:
                yield part.begin, part.begin + len(part.text), number
                number += 1
            else:
                words = Words.of(self._words.cut(part.text), part.begin, number)
                yield words
                number += len(words.begins)


def build(
    folder: Path, special: Mapping[str, str], settings: Mapping[str, Any]
) -> tuple[tokenizers.Tokenizer, SentencePieces]:
    """Build the tokenizer of a folder with a SentencePiece model, a dictionary and ``vocab.txt``.

    Args:
        folder: the folder.
        special: part (``cls_token``, ...) -> token.
        settings: of ``tokenizer_config.json``: ``do_lower_case``.

    Returns:
        A tokenizer of the library that looks pieces up and adds special tokens, and the splitter into pieces.
    """
    for name in (MODEL_FILE, WORDS_FILE, VOCAB_FILE):
        if not (folder / name).is_file():
            raise WeightsError(f"{folder}: ERNIE tiny's tokenizer needs {MODEL_FILE}, {WORDS_FILE} and {VOCAB_FILE}; "
                               f"{name} is missing")  # fmt: skip
    vocab = read_vocab(folder / VOCAB_FILE, special.values())
    # Without special tokens, which the library would search inside the pieces.
    backend = tokenizers.Tokenizer(models.WordLevel(vocab, unk_token=special["unk_token"]))
    ends = [(token, vocab.get(token, 0)) for token in (special["sep_token"], special["cls_token"])]
    backend.post_processor = processors.BertProcessing(*ends)
    words = read_dictionary(folder / WORDS_FILE)
    lower = bool(settings.get("do_lower_case", True))
    path = folder / MODEL_FILE
    with reading(path):
        model = path.read_bytes()
    with naming(path):
        return backend, SentencePieces(model, words, vocab, set(special.values()), lower)


def _processor(model: bytes) -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise WeightsError("needs sentencepiece: pip install 'onion-paddle[sentencepiece]'") from error
    try:
        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(model)
        return processor
    except Exception as error:  # RuntimeError, ValueError, and others of the library's bindings
        raise WeightsError("damaged, or not a SentencePiece model; download it again") from error


def _explained(texts: Texts, pre_split: bool, error: Exception) -> DataError:
    for index, text in enumerate(texts):
        if any(HALF_PAIR.search(part) for part in (text if pre_split else [str(text)])):
            return DataError(
                f"text or pair {index} contains a lone surrogate, which is not a character; decode it again"
            )
    return DataError(f"cannot tokenize: {error}")


def _numbered(places: list[np.ndarray], texts: Texts) -> list[np.ndarray]:
    """Convert the places of the pieces of each given word to those of each text, with the number of the given word."""
    found = []
    for words in regroup(places, texts):
        numbers = np.repeat(np.arange(len(words)), [len(word) for word in words])
        table = np.concatenate([np.zeros((0, 3), np.int64), *words])
        table[:, 2] = numbers
        found.append(table)
    return found


def _rows(words: Words, pieces: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[Row]:
    """Return the place of each piece in the text, given SentencePiece's spans in ``words.joined``.

    SentencePiece's spans include the space before a word; these do not. A piece that consists of the mark of that space
    has an empty span at the beginning of the following word. If a character (such as a ligature) is split into several
    pieces, only the last one has a span in SentencePiece; here each has the character.
    """
    bare = [_bare(words.joined, piece, *span) for piece, span in zip(pieces, spans, strict=True)]
    return [words.row(begin, end) for begin, end in _spread(pieces, bare)]


def _bare(text: str, piece: str, begin: int, end: int) -> tuple[int, int]:
    """Strip a span of whitespace, unless the piece is whitespace; a span of a space becomes empty, behind it."""
    space = " " if piece.strip(MARK).isspace() else None
    while begin < len(text) and not text[begin].strip(space):
        begin += 1
    while end > begin and not text[end - 1].strip(space):
        end -= 1
    return begin, max(begin, end)


def _spread(pieces: Sequence[str], spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Give a character to all pieces that it was split into, and keep empty spans before what follows them."""
    following: tuple[int, int] | None = None
    found = []
    for piece, (begin, end) in zip(reversed(pieces), reversed(spans), strict=True):
        if following is not None and begin == end:
            begin = end = min(begin, following[0])
            if piece != MARK and begin == following[0] < following[1]:
                end = following[1]
        if following is None or piece != MARK or begin < end:
            following = (begin, end)
        found.append((begin, end))
    return reversed(found)
