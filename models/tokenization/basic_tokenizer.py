"""Make the Rust library treat every character as the reference tokenizers do, which are written in Python.

The library has its own Unicode tables, older than Python's: it keeps, drops or splits about 800 assigned characters
(recent punctuation and marks, 256 Chinese characters) and all unassigned ones differently. And it lowercases letter by
letter, whereas Python's ``str.lower`` has a final sigma at the end of a Greek word. Such characters are replaced one by
one before the library sees the text, so offsets stay the same. ASCII texts need none of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, cast

import tokenizers
from tokenizers import models, normalizers

from onion.models.tokenization.pre_tokenizer import Prepared, Texts, regroup

DROPPED, SPACE, ALONE, INSIDE = "dropped", "space", "alone", "inside"
# For each treatment, characters that the library treats so. Those that become tokens are rare (Buginese signs, the
# last ideograph of extension E, letters of Linear A), so that the vocabulary lacks them and they become [UNK].
STAND_INS = {DROPPED: ("\0",), SPACE: (" ",), ALONE: ("\u1a1e", "\U0002cea1"), INSIDE: ("\U00010600", "\U00010601")}
SIGMA = "Σ"
SYMBOLS = "\u00ad\u00b2\u00ba\u3007\u00b5\u00d8\u014b\u01b1"  # to PaddleNLP, besides Unicode's
SEPARATORS = re.compile("[\x1c-\x1f]")  # whitespace to Python, not to Unicode
# Chinese characters in google-research/bert: blocks of ideographs, without Japanese and Korean script.
CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class Characters:
    """Replaces characters that the library would treat differently from the reference.

    Args:
        backend: the tokenizer. Only tokenizers with BERT's normalizer (with cleaning), plain lowercasing or, for
            WordPiece and whole words, no normalizer are handled, if they split texts at all; byte-level BPE needs
            nothing.
    """

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self.settings: Mapping[str, Any] = {}
        self._backend = backend
        normalizer = backend.normalizer
        self._bert = isinstance(normalizer, normalizers.BertNormalizer) and normalizer.clean_text
        lower = isinstance(normalizer, normalizers.Lowercase)
        cased = normalizer is None and isinstance(backend.model, (models.WordPiece, models.WordLevel))
        self._active = (self._bert or lower or cased) and backend.pre_tokenizer is not None
        # PaddleNLP splits at symbols and lowercases letter by letter, like the library.
        self._symbols = self._active and self._bert and len(backend.pre_tokenizer.pre_tokenize_str("a°b")) == 3
        self._sigmas = (lower or (self._bert and normalizer.lowercase)) and not self._symbols
        self._known = set(map(chr, range(0x20, 0x7F)))
        self._table: dict[int, str] = {}

    def __call__(self, texts: Texts, pre_split: bool, offsets: bool) -> Prepared:
        """Replace characters; number and lengths of the texts stay the same, so the library's offsets are theirs."""
        if not pre_split:
            return Prepared(list(self.replace(cast(Sequence[str], texts))), split=False)
        words = self.replace([word for text in texts for word in text])
        return Prepared(regroup(words, texts), split=True)

    def files(self) -> Mapping[str, bytes]:
        """Return nothing: ``tokenizer.json`` is complete."""
        return {}

    def replace(self, texts: Sequence[str]) -> Sequence[str]:
        """Replace characters in texts, or in words."""
        if not self._active:
            return texts
        if self._bert:
            present = set("".join([text for text in texts if not text.isascii()]))
        else:
            present = set("".join([text for text in texts if not text.isascii() or SEPARATORS.search(text)]))
        for character in present - self._known:
            self._learn(character)
            self._known.add(character)  # last, because other threads look it up
        odd = [character for character in present if ord(character) in self._table]
        if odd:
            pattern = re.compile(f"[{re.escape(''.join(odd))}]")
            texts = [text.translate(self._table) if pattern.search(text) else text for text in texts]
        if self._sigmas and SIGMA in present:
            texts = [self._final_sigmas(text) if SIGMA in text else text for text in texts]
        return texts

    def _learn(self, character: str) -> None:
        """Find out whether a character needs a replacement, and which."""
        wanted, given = self._reference(character), self._library(character)
        if wanted == given:
            return
        if given and wanted in (ALONE, INSIDE) and self._backend.token_to_id(character) is not None:
            return  # a token itself: no other character can replace it
        for stand_in in STAND_INS[wanted]:
            if self._backend.token_to_id(stand_in) is None:
                self._table[ord(character)] = stand_in
                return

    def _reference(self, character: str) -> str:
        """Return how google-research/bert (or Python's notion of whitespace) treats a character in a word."""
        if not self._bert:
            return SPACE if character.isspace() else INSIDE
        if _is_dropped(character):
            return DROPPED
        if character.isspace():
            return SPACE
        rules = self._backend.normalizer
        if rules.handle_chinese_chars and is_chinese(character):
            return ALONE
        if rules.lowercase:
            character = character.lower()
        strip = rules.lowercase if rules.strip_accents is None else rules.strip_accents
        if strip:
            parts = unicodedata.normalize("NFD", character)
            character = "".join(part for part in parts if unicodedata.category(part) != "Mn")
        if not character:
            return DROPPED
        alone = any(_is_punctuation(part) or (self._symbols and is_symbol(part)) for part in character)
        return ALONE if alone else INSIDE

    def _library(self, character: str) -> str | None:
        """Return how the library treats a character in a word; None for a lone surrogate, which it does not accept."""
        if "\ud800" <= character <= "\udfff":
            return None
        text, normalizer = f"a{character}b", self._backend.normalizer
        if normalizer is not None:
            text = normalizer.normalize_str(text)
        words = [word for word, _ in self._backend.pre_tokenizer.pre_tokenize_str(text)]
        if len(words) == 2:
            return SPACE
        if not self._bert:
            return INSIDE
        if len(words) == 3:
            return ALONE
        return DROPPED if words == ["ab"] else INSIDE

    def _final_sigmas(self, text: str) -> str:
        """Lowercase every capital sigma like Python, which distinguishes the end of a word."""
        kept = [i for i, character in enumerate(text) if not (self._bert and _is_dropped(character))]
        # The only letter whose lower case has two characters would shift the following ones.
        lowered = "".join(text[i] for i in kept).replace("İ", "I").lower()
        result = list(text)
        for i, low in zip(kept, lowered, strict=True):
            if text[i] == SIGMA:
                result[i] = low
        return "".join(result)


def _is_dropped(character: str) -> bool:
    """Return whether BERT's cleaning drops a character: control, format, private and unassigned characters, U+FFFD."""
    return character == "\ufffd" or (unicodedata.category(character)[0] == "C" and character not in "\t\n\r")


def _is_punctuation(character: str) -> bool:
    """Return whether a character is punctuation for BERT, including all ASCII signs."""
    ascii_sign = "!" <= character <= "~" and not character.isalnum()
    return ascii_sign or unicodedata.category(character)[0] == "P"


def is_chinese(character: str) -> bool:
    """Return whether a character is a Chinese one for BERT."""
    return any(first <= ord(character) <= last for first, last in CHINESE)


def is_symbol(character: str) -> bool:
    """Return whether a character is a symbol for PaddleNLP."""
    return unicodedata.category(character)[0] == "S" or character in SYMBOLS
