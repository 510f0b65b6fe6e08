"""Texts -> token ids, by the ``tokenizers`` library (Rust), which is called once for each word. Without Paddle."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from onion.errors import DataError
from onion.models import hub
from onion.models.formats.paths import naming
from onion.models.formats.safetensors_file import put_file
from onion.models.tokenization import windows
from onion.models.tokenization.basic_tokenizer import Characters
from onion.models.tokenization.cut import can_be_cut, cut, spelled_out
from onion.models.tokenization.encoding import Encoding, places_of
from onion.models.tokenization.loading import SETTINGS_FILE, TOKENIZER_FILE, find, read_settings, special_parts
from onion.models.tokenization.pre_tokenizer import LONGEST, Given, Preparation, Prepared, Texts, checked, whole
from onion.models.tokenization.windows import Tokens
from onion.models.tokenization.word_cache import Words
from onion.models.weights import make_folder

TRUNCATIONS = ("longest_first", "only_first", "only_second")

__all__ = ["Encoding", "Texts", "Tokenizer"]


class Tokenizer:
    """The tokenizer of an encoder: WordPiece, characters, byte-level BPE or SentencePiece. Thread-safe.

    A text, or a word of a pre-split text, that spells a special token (``[SEP]``, ``<mask>``) becomes that token, as in
    the references; remove such words from untrusted texts.

    Args:
        backend: the tokenizer of the library, which this object takes over. Its stored truncation and padding are
            disabled.
        settings: the content of ``tokenizer_config.json``: ``do_lower_case``, the names of the special tokens, ...
        preparation: prepares texts for the backend; by default it makes the backend treat every character like the
            reference.

    Attributes:
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens.

    Raises:
        WeightsError: a special token is not in the vocabulary, or has two parts.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        settings: dict[str, Any] | None = None,
        preparation: Preparation | None = None,
    ) -> None:
        self._prepare: Preparation = preparation or Characters(backend)
        self.settings = {**(settings or {}), **self._prepare.settings}
        self._backend = backend
        # Truncation is a setting of the backend, so a call with truncation holds the lock.
        self._lock = threading.Lock()
        self._cut: tuple[int, str] | None = None
        backend.no_truncation()
        backend.no_padding()
        names, ids = special_parts(backend, self.settings)
        self.pad_id: int = ids["pad_token"]
        self.unk_id: int = ids["unk_token"]
        self.cls_id: int = ids["cls_token"]
        self.sep_id: int = ids["sep_token"]
        self.mask_id: int = ids["mask_token"]
        self._mask_token = names["mask_token"]
        self._words = self._by_words()
        self._size = 1 + max(backend.get_vocab().values())

    def _by_words(self) -> Words | None:
        """Return the word cache, which is faster if offsets are not needed, if the tokenizer supports it."""
        suits = isinstance(self._prepare, Characters) and Words.suit(self._backend)
        return Words(self._backend, self._mask_token) if suits else None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_words")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())
        self._uncut()
        self._words = self._by_words()

    @property
    def vocab_size(self) -> int:
        """One more than the largest id, including added tokens: the minimum number of word embeddings."""
        return self._size

    def tokens(self, ids: Iterable[int]) -> list[str | None]:
        """Return tokens as in the vocabulary (``##ing``, ``Ġfilm``); None for unknown ids."""
        numbers = map(int, ids)
        return [self._backend.id_to_token(each) if 0 <= each < self._size else None for each in numbers]

    def cut(self, ids: Iterable[int]) -> tuple[Tokenizer, list[int]]:
        """Return a tokenizer with a part of the vocabulary, and the old id of each of its tokens, in order.

        A text that is made of the given tokens is tokenized as before. The special tokens are kept, and each character
        of a token as a token of its own, so that other words of the same characters are not unknown.

        Args:
            ids: of the tokens to keep.

        Raises:
            DataError: it is no WordPiece of the library's own.
        """
        if not (can_be_cut(self._backend) and isinstance(self._prepare, Characters)):
            raise DataError(
                "the vocabulary of this tokenizer cannot be cut, only that of a WordPiece (BERT, ERNIE) can"
            )
        kept = spelled_out(self._backend, ids)
        return Tokenizer(cut(self._backend, kept), self.settings), kept

    def __call__(
        self,
        texts: Given,
        pairs: Given | None = None,
        max_length: int = 128,
        truncation: str = "longest_first",
        *,
        offsets: bool = False,
        pre_split: bool = False,
    ) -> list[Encoding]:
        """Tokenize texts, or pairs of texts, in parallel on all cores.

        Args:
            texts: the texts.
            pairs: one for each text, or None.
            max_length: maximum length of a result, including special tokens.
            truncation: which text of a pair is truncated: ``"longest_first"``, the longer one until both are equally
                long, then both; ``"only_first"``; ``"only_second"``.
            offsets: return ``offsets`` and ``words`` too; slower.
            pre_split: each text is a list of words, which are tokenized independently.

        Raises:
            DataError: ``pairs`` has another length than ``texts``, something is not a string, ``max_length`` is not a
                whole number or leaves no room for a token, the truncation is unknown, or it may not truncate the text
                that is too long.
        """
        max_length = self._length(max_length, truncation, pairs is not None)
        texts, pairs = checked(texts, pairs, pre_split)
        first = self._prepare(texts, pre_split, offsets)
        second = None if pairs is None else self._prepare(pairs, pre_split, offsets)
        if self._words is not None and not (offsets or pre_split):
            fast = self._words(first.inputs, None if second is None else second.inputs, max_length, truncation)
            if fast is not None:
                return fast
        found, cut = self._encoded(first, second, max_length, truncation, offsets)
        more = map(places_of, found, _tables(first), _tables(second)) if offsets else repeat((None, None))
        return [
            Encoding(np.array(one.ids, np.int64), np.array(one.type_ids, np.int64), was_cut, *places)
            for one, was_cut, places in zip(found, cut, more, strict=False)  # repeat() has no end
        ]

    def _encoded(
        self, first: Prepared, second: Prepared | None, max_length: int, truncation: str, offsets: bool
    ) -> tuple[list[tokenizers.Encoding], list[bool]]:
        """Return the library's encodings, truncated, and whether each was truncated."""
        inputs = first.inputs if second is None else list(zip(first.inputs, second.inputs, strict=True))
        # The fast one computes no offsets.
        encode = self._backend.encode_batch if offsets else self._backend.encode_batch_fast
        with self._lock:
            if (max_length, truncation) != self._cut:
                self._backend.enable_truncation(max_length, strategy=truncation)
                self._cut = (max_length, truncation)
            found = self._encode(encode, inputs, first.split)
            cut = [bool(one.overflowing) for one in found]
            if second is not None and truncation == "longest_first" and any(cut):
                room = max_length - self._backend.num_special_tokens_to_add(True)
                found = windows.mend_pairs(self._backend, inputs, found, room, first.split)
        return found, cut

    def windows(
        self,
        texts: Given,
        pairs: Given | None = None,
        max_length: int = 128,
        stride: int = 64,
        *,
        max_first: int | None = None,
        pre_split: bool = False,
    ) -> list[list[Encoding]]:
        """Tokenize texts of any length as windows that together contain every token.

        Args:
            texts: the texts; the first text of a pair is complete in every window.
            pairs: one for each text, or None; the windows are over these.
            max_length: maximum length of a window, including special tokens.
            stride: distance between the beginnings of windows (BERT's and ERNIE's ``doc_stride``), limited to the
                length of a window, so that no token is skipped.
            max_first: maximum length of the first text of each pair (ERNIE's ``max_query_length``).
            pre_split: each text is a list of words, as in a call.

        Returns:
            The windows of each text in order, at least one, with offsets and words; ``truncated`` says whether a window
            has less than all tokens.

        Raises:
            DataError: as in a call; ``stride`` or ``max_first`` is not positive; a first text leaves no room for its
                pair.
        """
        max_length, stride = self._length(max_length, "longest_first", pairs is not None), whole("stride", stride)
        texts, pairs = checked(texts, pairs, pre_split)
        if stride < 1:
            raise DataError(f"stride must be >= 1, got {stride}")
        if max_first is not None and (whole("max_first", max_first) < 1 or pairs is None):
            raise DataError(f"max_first must be >= 1, and needs pairs, got {max_first}")
        with self._lock:
            self._uncut()
            frame = windows.Frame.of(self._backend, self._mask_token, pairs is not None)
            firsts = self._tokens(texts, pre_split)
            seconds = None if pairs is None else self._tokens(pairs, pre_split)
        return windows.cut(frame, firsts, seconds, max_length, stride, max_first)

    def _tokens(self, texts: Texts, pre_split: bool) -> list[Tokens]:
        given = self._prepare(texts, pre_split, True)
        found = self._encode(self._backend.encode_batch, given.inputs, given.split, add_special_tokens=False)
        places = map(places_of, found, _tables(given))
        return [Tokens(np.array(one.ids, np.int64), *place) for one, place in zip(found, places, strict=True)]

    def _encode(
        self, encode: Callable[..., list[tokenizers.Encoding]], inputs: list[Any], split: bool, **more: bool
    ) -> list[tokenizers.Encoding]:
        try:
            return encode(inputs, is_pretokenized=split, **more)
        except Exception as error:  # the library raises plain Exception and TypeError
            raise self._explained(inputs, split, error) from error

    def _uncut(self) -> None:
        self._backend.no_truncation()
        self._cut = None

    def _length(self, max_length: int, truncation: str, pairs: bool) -> int:
        if truncation not in TRUNCATIONS:
            raise DataError(f"unknown truncation {truncation!r}; known are {', '.join(TRUNCATIONS)}")
        if truncation == "only_second" and not pairs:
            raise DataError("truncation 'only_second' needs pairs")
        special = self._backend.num_special_tokens_to_add(pairs)
        max_length = whole("max_length", max_length)
        if max_length <= special:
            raise DataError(f"max_length {max_length} leaves no room for text beside {special} special tokens")
        return min(max_length, LONGEST)

    def _explained(self, inputs: Sequence[Any], split: bool, error: Exception) -> DataError:
        """Find the input that the library refused, and the reason, which it does not report."""
        for index, one in enumerate(inputs):
            try:
                self._backend.encode_batch_fast([one], is_pretokenized=split)
            except TypeError:
                return DataError(
                    f"text or pair {index} contains a lone surrogate, which is not a character; decode it again"
                )
            except Exception:
                max_length, truncation = self._cut or (0, "")
                kept = "pair" if truncation == "only_first" else "text"
                return DataError(
                    f"{kept} {index} alone is too long for max_length {max_length}, and {truncation!r} does not "
                    "truncate it"
                )
        return DataError(f"cannot tokenize: {error}")

    @classmethod
    def from_pretrained(cls, name_or_folder: str | Path, style: str | None = None) -> Tokenizer:
        """Load ``tokenizer.json``, or else ``vocab.txt``, or else ``vocab.json`` with ``merges.txt``.

        ``tokenizer_config.json`` is used if it exists. If it names ERNIE tiny's tokenizer, or if the folder has its
        SentencePiece model and no ``tokenizer.json``, that model, its dictionary and ``vocab.txt`` are loaded.

        Args:
            name_or_folder: the folder, or a model name (see hub.py), which is downloaded on first use.
            style: build one of :data:`onion.models.tokenization.wordpiece.STYLES` from ``vocab.txt``, even if there is
                a ``tokenizer.json``; BERT's and ERNIE's own is ``"wordpiece"``.

        Raises:
            WeightsError: the name or the style is unknown, a file is missing or damaged, a special token is missing, or
                ``sentencepiece`` is needed and not installed.
        """
        folder = hub.resolve(name_or_folder)
        settings = read_settings(folder / SETTINGS_FILE)
        if style is not None:
            settings.pop("tokenizer_class", None)
        path, load = find(folder, settings, style)
        backend, preparation = load()
        with naming(path):
            return cls(backend, settings, preparation)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write ``tokenizer.json`` and ``tokenizer_config.json``, each replaced atomically.

        For ERNIE tiny's tokenizer, which the library cannot represent, its three files are written instead of the
        first.

        Raises:
            WeightsError: they cannot be written.
        """
        folder = make_folder(folder)
        for name, content in self.files().items():
            put_file(folder / name, content)

    def files(self) -> dict[str, bytes]:
        """Return the files of :meth:`save_pretrained` by name, which determine all ids."""
        with self._lock:
            self._uncut()  # truncation belongs to the call
            files = self._prepare.files() or {TOKENIZER_FILE: self._backend.to_str(pretty=True).encode()}
        settings = json.dumps(self.settings, indent=2, ensure_ascii=False) + "\n"
        return {**files, SETTINGS_FILE: settings.encode()}


def _tables(prepared: Prepared | None) -> Iterable[np.ndarray | None]:
    return repeat(None) if prepared is None or prepared.places is None else prepared.places
