"""Texts -> token ids, by the ``tokenizers`` library (Rust). Without Paddle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import tokenizers
from tokenizers import models

from onion.errors import DataError, WeightsError
from onion.models.formats.tensors import put_file
from onion.models.splitting import byte_bpe, wordpiece
from onion.models.splitting.characters import Characters
from onion.models.splitting.truncation import mend_pairs
from onion.models.splitting.vocabulary import read_vocab
from onion.models.weights import make_folder

TOKENIZER_FILE = "tokenizer.json"
SETTINGS_FILE = "tokenizer_config.json"
VOCAB_FILE = "vocab.txt"
TRUNCATIONS = ("longest_first", "only_first", "only_second")

Texts = Sequence[str] | Sequence[Sequence[str]]


@attrs.frozen
class Encoding:
    """One text, or pair of texts, as the encoder wants it; not padded.

    Attributes:
        ids: int64 [length], token ids: [CLS] text [SEP], or [CLS] text [SEP] pair [SEP]; RoBERTa's <s> text </s>, or
            <s> text </s></s> pair </s>.
        types: int64 [length], 0 for the text, 1 for the pair (RoBERTa: always 0).
        truncated: whether tokens were cut off.
        offsets: int64 [length, 2] where asked for, else None: the token comes from ``text[begin:end]`` of its text (of
            its word, where the texts are lists of words), in code points; (0, 0) for special tokens.
        words: int64 [length] where asked for, else None: the number of the word in its text that the token is part of,
            counted anew in the pair; -1 for special tokens. Words are what the tokenizer splits a text into first,
            or those that were given.
    """

    ids: np.ndarray
    types: np.ndarray
    truncated: bool
    offsets: np.ndarray | None = None
    words: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def mask(self) -> np.ndarray:
        """int64 [length], all ones: nothing here is padding."""
        return np.ones_like(self.ids)


class Tokenizer:
    """A tokenizer of BERT, ERNIE or RoBERTa: WordPiece, characters or byte-level BPE, as its files say.

    Args:
        backend: the tokenizer of the library; belongs to this object from now on. Its stored truncation and padding
            are switched off.
        settings: what ``tokenizer_config.json`` holds: ``do_lower_case``, the names of the special tokens, ...

    Attributes:
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens.

    Raises:
        WeightsError: a special token is not in the vocabulary.
    """

    def __init__(self, backend: tokenizers.Tokenizer, settings: dict[str, Any] | None = None) -> None:
        self.settings = dict(settings or {})
        self._backend = backend
        self._cut: tuple[int, str] | None = None
        backend.no_truncation()
        backend.no_padding()
        self._characters = Characters(backend)
        # The fast one does not work out offsets; it came with tokenizers 0.20.
        self._encode_batch = getattr(backend, "encode_batch_fast", backend.encode_batch)
        defaults = byte_bpe.SPECIAL_TOKENS if isinstance(backend.model, models.BPE) else wordpiece.SPECIAL_TOKENS
        names = _special_tokens(self.settings, defaults)
        ids = {part: backend.token_to_id(token) for part, token in names.items()}
        missing = [names[part] for part, token_id in ids.items() if token_id is None]
        if missing:
            raise WeightsError(f"special tokens are missing in the vocabulary: {', '.join(missing)}")
        self.pad_id: int = ids["pad_token"]
        self.unk_id: int = ids["unk_token"]
        self.cls_id: int = ids["cls_token"]
        self.sep_id: int = ids["sep_token"]
        self.mask_id: int = ids["mask_token"]
        self._size = 1 + max(backend.get_vocab().values())

    @property
    def vocab_size(self) -> int:
        """One more than the largest id, added tokens included: what the encoder's embedding must have at least."""
        return self._size

    def __call__(
        self,
        texts: Texts,
        pairs: Texts | None = None,
        max_length: int = 128,
        truncation: str = "longest_first",
        *,
        offsets: bool = False,
        pre_split: bool = False,
    ) -> list[Encoding]:
        """Tokenize texts, or pairs of texts, all at once (on all cores).

        Args:
            texts: the texts.
            pairs: one for each text.
            max_length: most tokens a result may have, special tokens included.
            truncation: what is cut of a pair that is longer: ``"longest_first"``, the longer one until both are equally
                long and then both; ``"only_first"``; ``"only_second"``.
            offsets: give ``offsets`` and ``words`` too; slower.
            pre_split: each text is a list of words, which are not joined; each is split further on its own.

        Raises:
            DataError: ``pairs`` has another length than ``texts``, something is not a string, ``max_length`` leaves no
                room for a token, there is no such truncation, or it may not cut the text that would have to be cut.
        """
        self._truncate(max_length, truncation, pairs is not None)
        _check(texts, pairs, pre_split)
        first = self._prepare(texts, pre_split)
        inputs = first if pairs is None else list(zip(first, self._prepare(pairs, pre_split), strict=True))
        encode = self._backend.encode_batch if offsets else self._encode_batch
        try:
            found = encode(inputs, is_pretokenized=pre_split)
        except Exception as error:  # the library raises plain Exception and TypeError
            raise self._explained(inputs, pre_split, error) from error
        cut = [bool(one.overflowing) for one in found]
        if pairs is not None and truncation == "longest_first" and any(cut):
            room = max_length - self._backend.num_special_tokens_to_add(True)
            found = mend_pairs(self._backend, inputs, found, room, pre_split)
        more = map(_places, found) if offsets else repeat((None, None))
        return [
            Encoding(np.array(one.ids, np.int64), np.array(one.type_ids, np.int64), was_cut, *places)
            for one, was_cut, places in zip(found, cut, more, strict=False)  # repeat() has no end
        ]

    def _prepare(self, texts: Texts, pre_split: bool) -> list[Any]:
        if not pre_split:
            return list(self._characters(texts))
        words = iter(self._characters([word for text in texts for word in text]))
        return [[next(words) for _ in text] for text in texts]

    def _truncate(self, max_length: int, truncation: str, pairs: bool) -> None:
        if truncation not in TRUNCATIONS:
            raise DataError(f"no truncation {truncation!r}; there are {', '.join(TRUNCATIONS)}")
        if truncation == "only_second" and not pairs:
            raise DataError("truncation 'only_second' needs pairs")
        special = self._backend.num_special_tokens_to_add(pairs)
        if max_length <= special:
            raise DataError(f"max_length {max_length} leaves no room for text beside {special} special tokens")
        if (max_length, truncation) != self._cut:
            self._backend.enable_truncation(max_length, strategy=truncation)
            self._cut = (max_length, truncation)

    def _explained(self, inputs: Sequence[Any], pre_split: bool, error: Exception) -> DataError:
        """Name the input that the library refused: it says neither which nor why."""
        for index, one in enumerate(inputs):
            try:
                self._encode_batch([one], is_pretokenized=pre_split)
            except TypeError:
                return DataError(
                    f"text or pair {index} holds half a surrogate pair, which is no character; decode it anew"
                )
            except Exception:
                max_length, truncation = self._cut or (0, "")
                kept = "pair" if truncation == "only_first" else "text"
                return DataError(
                    f"{kept} {index} alone is too long for max_length {max_length} and {truncation!r} may not cut it"
                )
        return DataError(f"cannot tokenize: {error}")

    @classmethod
    def from_pretrained(cls, folder: str | Path, style: str | None = None) -> Tokenizer:
        """Load ``tokenizer.json``, or else ``vocab.txt``, or else ``vocab.json`` with ``merges.txt``.

        ``tokenizer_config.json`` is heeded where it is there.

        Args:
            folder: where the files are.
            style: build one of :data:`onion.models.splitting.wordpiece.STYLES` from ``vocab.txt``, even if there is a
                ``tokenizer.json``; BERT's and ERNIE's own is ``"wordpiece"``.

        Raises:
            WeightsError: no such folder or style, no such file, a damaged one, or a special token is missing.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise WeightsError(f"{folder}: no such folder")
        settings = _read_settings(folder / SETTINGS_FILE)
        path, load = _find(folder, settings, style)
        backend = load()
        try:
            return cls(backend, settings)
        except WeightsError as error:
            raise WeightsError(f"{path}: {error}") from error

    def save_pretrained(self, folder: str | Path) -> None:
        """Write ``tokenizer.json`` and ``tokenizer_config.json``, each replaced as a whole or not at all.

        Raises:
            WeightsError: they cannot be written.
        """
        folder = make_folder(folder)
        self._backend.no_truncation()  # a setting of the call, not of the tokenizer
        self._cut = None
        put_file(folder / TOKENIZER_FILE, self._backend.to_str(pretty=True).encode())
        put_file(folder / SETTINGS_FILE, (json.dumps(self.settings, indent=2, ensure_ascii=False) + "\n").encode())


def _places(found: tokenizers.Encoding) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and words of an encoding; the library has None for the word of a special token."""
    words = [-1 if word is None else word for word in found.word_ids]
    return np.array(found.offsets, np.int64).reshape(-1, 2), np.array(words, np.int64)


def _special_tokens(settings: Mapping[str, Any], defaults: Mapping[str, str]) -> dict[str, str]:
    """Part -> token; Hugging Face stores a token as a string or as an object with ``content``."""
    tokens = {part: settings.get(part) or default for part, default in defaults.items()}
    return {part: token["content"] if isinstance(token, dict) else token for part, token in tokens.items()}


def _check(texts: Texts, pairs: Texts | None, pre_split: bool) -> None:
    if isinstance(texts, str) or isinstance(pairs, str):
        raise DataError("give a list of texts, not one text")
    if pairs is not None and len(texts) != len(pairs):
        raise DataError(f"{len(texts)} texts and {len(pairs)} pairs do not match")
    wanted, called = ((list, tuple), "a list of words") if pre_split else (str, "a string")
    for name, values in (("text", texts), ("pair", () if pairs is None else pairs)):
        for index, value in enumerate(values):
            if not isinstance(value, wanted):
                raise DataError(f"{name} {index} is a {type(value).__name__}, not {called}")
            if pre_split and not all(isinstance(word, str) for word in value):
                odd = next(word for word in value if not isinstance(word, str))
                raise DataError(f"{name} {index} holds a {type(odd).__name__}, not words only")


def _find(folder: Path, settings: dict[str, Any], style: str | None) -> tuple[Path, Callable[[], tokenizers.Tokenizer]]:
    """The file that decides and how to make a tokenizer of it."""
    path = folder / TOKENIZER_FILE
    if style is None and path.is_file():
        return path, lambda: _from_json(path)
    vocab = folder / VOCAB_FILE
    if vocab.is_file():
        special = _special_tokens(settings, wordpiece.SPECIAL_TOKENS)
        return vocab, lambda: wordpiece.build(read_vocab(vocab), special, settings, style or "wordpiece")
    if style is not None:
        raise WeightsError(f"{folder}: style {style!r} needs {VOCAB_FILE}, which is not there")
    if (folder / byte_bpe.VOCAB_FILE).is_file() or (folder / byte_bpe.MERGES_FILE).is_file():
        special = _special_tokens(settings, byte_bpe.SPECIAL_TOKENS)
        return folder / byte_bpe.VOCAB_FILE, lambda: byte_bpe.build(folder, special, settings)
    raise WeightsError(f"{folder}: holds neither {TOKENIZER_FILE} nor {VOCAB_FILE}")


def _read_settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path}: not a JSON file: {error}") from error
    if not isinstance(settings, dict):
        raise WeightsError(f"{path}: holds a JSON {type(settings).__name__}, not an object")
    return settings


def _from_json(path: Path) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception for whatever is wrong with a file
        raise WeightsError(f"{path}: damaged or not a tokenizer: {error}") from error
