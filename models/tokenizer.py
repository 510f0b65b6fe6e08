"""Texts -> token ids, by the ``tokenizers`` library (Rust), which is asked once for each word. Without Paddle."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from onion.errors import DataError, WeightsError
from onion.models import hub
from onion.models.formats.safetensors_file import put_file
from onion.models.tokenization import windows
from onion.models.tokenization.basic_tokenizer import Characters
from onion.models.tokenization.encoding import Encoding, places_of
from onion.models.tokenization.loading import SETTINGS_FILE, TOKENIZER_FILE, find, read_settings, special_parts
from onion.models.tokenization.pre_tokenizer import Preparation, Prepared, Texts
from onion.models.tokenization.truncation import mend_pairs
from onion.models.tokenization.validation import LONGEST, Given, checked, whole
from onion.models.tokenization.windows import Tokens
from onion.models.tokenization.word_cache import Words
from onion.models.weights import make_folder

TRUNCATIONS = ("longest_first", "only_first", "only_second")

__all__ = ["Encoding", "Texts", "Tokenizer"]


class Tokenizer:
    """A tokenizer of BERT, ERNIE or RoBERTa: WordPiece, characters, byte-level BPE or SentencePiece, as its files say.

    Any number of threads may use one at once. A text, or a word of a text that was split before, that spells a special
    token (``[SEP]``, ``<mask>``) becomes that token, as with the references; take such words out of texts of strangers.

    Args:
        backend: the tokenizer of the library; belongs to this object from now on. Its stored truncation and padding
            are switched off.
        settings: what ``tokenizer_config.json`` holds: ``do_lower_case``, the names of the special tokens, ...
        preparation: what is done to texts before the backend gets them; by default what makes it treat every character
            as the reference does.

    Attributes:
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens.

    Raises:
        WeightsError: a special token is not in the vocabulary, or plays two parts.
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
        # The backend keeps truncation as a setting: whoever needs one holds this until it is done with the backend.
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
        """The fast way for texts whose offsets nobody asks for, if there is one."""
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
        """One more than the largest id, added tokens included: what the encoder's embedding must have at least."""
        return self._size

    def tokens(self, ids: Iterable[int]) -> list[str | None]:
        """Return tokens as the vocabulary writes them (``##ing``, ``Ġfilm``); None for an id that it has not."""
        numbers = map(int, ids)
        return [self._backend.id_to_token(each) if 0 <= each < self._size else None for each in numbers]

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
            DataError: ``pairs`` has another length than ``texts``, something is not a string, ``max_length`` is no
                whole number or leaves no room for a token, there is no such truncation, or it may not cut the text that
                would have to be cut.
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
        """What the library makes of texts or pairs, cut to a length, and whether each was cut."""
        inputs = first.inputs if second is None else list(zip(first.inputs, second.inputs, strict=True))
        # The fast one does not work out offsets.
        encode = self._backend.encode_batch if offsets else self._backend.encode_batch_fast
        with self._lock:
            if (max_length, truncation) != self._cut:
                self._backend.enable_truncation(max_length, strategy=truncation)
                self._cut = (max_length, truncation)
            found = self._encode(encode, inputs, first.split)
            cut = [bool(one.overflowing) for one in found]
            if second is not None and truncation == "longest_first" and any(cut):
                room = max_length - self._backend.num_special_tokens_to_add(True)
                found = mend_pairs(self._backend, inputs, found, room, first.split)
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
        """Tokenize texts of any length as windows that together hold every token.

        Args:
            texts: the texts; where there are pairs, each is whole in every window.
            pairs: one for each text; the windows lie over these.
            max_length: most tokens a window may have, special tokens included.
            stride: how many tokens after the previous one a window begins (BERT's and ERNIE's ``doc_stride``). One that
                is larger than what a window takes leaves no token out: the windows then stand side by side.
            max_first: cut the first text of each pair to so many tokens (ERNIE's ``max_query_length``).
            pre_split: each text is a list of words, as in a call.

        Returns:
            For each text its windows, one at least, in order; the last ends with the text. Offsets and words are given,
            and ``truncated`` says whether a window holds less than all tokens.

        Raises:
            DataError: as in a call; ``stride`` or ``max_first`` is not positive; a first text leaves no room for its
                pair.
        """
        max_length, stride = self._length(max_length, "longest_first", pairs is not None), whole("stride", stride)
        texts, pairs = checked(texts, pairs, pre_split)
        if stride < 1:
            raise DataError(f"stride {stride} is no way forward; give 1 or more")
        if max_first is not None and (whole("max_first", max_first) < 1 or pairs is None):
            raise DataError(f"max_first {max_first} needs pairs, and 1 token or more")
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
            raise DataError(f"no truncation {truncation!r}; there are {', '.join(TRUNCATIONS)}")
        if truncation == "only_second" and not pairs:
            raise DataError("truncation 'only_second' needs pairs")
        special = self._backend.num_special_tokens_to_add(pairs)
        max_length = whole("max_length", max_length)
        if max_length <= special:
            raise DataError(f"max_length {max_length} leaves no room for text beside {special} special tokens")
        return min(max_length, LONGEST)

    def _explained(self, inputs: Sequence[Any], split: bool, error: Exception) -> DataError:
        """Name the input that the library refused: it says neither which nor why."""
        for index, one in enumerate(inputs):
            try:
                self._backend.encode_batch_fast([one], is_pretokenized=split)
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
    def from_pretrained(cls, name_or_folder: str | Path, style: str | None = None) -> Tokenizer:
        """Load ``tokenizer.json``, or else ``vocab.txt``, or else ``vocab.json`` with ``merges.txt``.

        ``tokenizer_config.json`` is heeded where it is there. Where it names ERNIE tiny's tokenizer, or where there is
        its SentencePiece model and no ``tokenizer.json``, that model, its dictionary and ``vocab.txt`` are loaded.

        Args:
            name_or_folder: where the files are, or a named model, which is fetched the first time (see hub.py).
            style: build one of :data:`onion.models.tokenization.wordpiece.STYLES` from ``vocab.txt``, even if there is
                a ``tokenizer.json``; BERT's and ERNIE's own is ``"wordpiece"``.

        Raises:
            WeightsError: neither a folder nor a known name, no such style, no such file, a damaged one, or a special
                token is missing; or ``sentencepiece`` is not installed and needed.
        """
        folder = hub.resolve(name_or_folder)
        settings = read_settings(folder / SETTINGS_FILE)
        if style is not None:
            settings.pop("tokenizer_class", None)  # it is another one now
        path, load = find(folder, settings, style)
        backend, preparation = load()
        try:
            return cls(backend, settings, preparation)
        except WeightsError as error:
            raise WeightsError(f"{path}: {error}") from error

    def save_pretrained(self, folder: str | Path) -> None:
        """Write ``tokenizer.json`` and ``tokenizer_config.json``, each replaced as a whole or not at all.

        Of ERNIE tiny's tokenizer, which the library has no form for, its three files instead of the first.

        Raises:
            WeightsError: they cannot be written.
        """
        folder = make_folder(folder)
        for name, content in self.files().items():
            put_file(folder / name, content)

    def files(self) -> dict[str, bytes]:
        """Return what :meth:`save_pretrained` writes, by name: all that decides about the ids."""
        with self._lock:
            self._uncut()  # a setting of the call, not of the tokenizer
            files = self._prepare.files() or {TOKENIZER_FILE: self._backend.to_str(pretty=True).encode()}
        settings = json.dumps(self.settings, indent=2, ensure_ascii=False) + "\n"
        return {**files, SETTINGS_FILE: settings.encode()}


def _tables(prepared: Prepared | None) -> Iterable[np.ndarray | None]:
    return repeat(None) if prepared is None or prepared.places is None else prepared.places
