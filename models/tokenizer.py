"""Texts -> token ids, by the ``tokenizers`` library (Rust). Without Paddle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, processors

from onion.errors import DataError, WeightsError
from onion.models.tensors import put_file
from onion.models.weights import make_folder

TOKENIZER_FILE = "tokenizer.json"
SETTINGS_FILE = "tokenizer_config.json"
VOCAB_FILE = "vocab.txt"

# Which token plays which part, unless tokenizer_config.json says otherwise: BERT's.
SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


@attrs.frozen
class Encoding:
    """One text, or pair of texts, as the encoder wants it; not padded.

    Attributes:
        ids: int64 [length], token ids: [CLS] text [SEP], or [CLS] text [SEP] pair [SEP].
        types: int64 [length], 0 for the text, 1 for the pair.
        truncated: whether tokens were cut off.
    """

    ids: np.ndarray
    types: np.ndarray
    truncated: bool

    def __len__(self) -> int:
        return len(self.ids)


class Tokenizer:
    """BERT's WordPiece tokenizer.

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
        self._max_length: int | None = None
        backend.no_truncation()
        backend.no_padding()
        # The fast one does not work out offsets; it came with tokenizers 0.20.
        self._encode_batch = getattr(backend, "encode_batch_fast", backend.encode_batch)
        ids = {part: backend.token_to_id(_token(self.settings, part)) for part in SPECIAL_TOKENS}
        missing = [_token(self.settings, part) for part, token_id in ids.items() if token_id is None]
        if missing:
            raise WeightsError(f"special tokens are missing in the vocabulary: {', '.join(missing)}")
        self.pad_id: int = ids["pad_token"]
        self.unk_id: int = ids["unk_token"]
        self.cls_id: int = ids["cls_token"]
        self.sep_id: int = ids["sep_token"]
        self.mask_id: int = ids["mask_token"]

    @property
    def vocab_size(self) -> int:
        """Number of tokens, the added ones included."""
        return int(self._backend.get_vocab_size())

    def __call__(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, max_length: int = 128
    ) -> list[Encoding]:
        """Tokenize texts, or pairs of texts, all at once (on all cores).

        Args:
            texts: the texts.
            pairs: one for each text.
            max_length: most tokens a result may have, special tokens included; of a pair the longer text is cut first.

        Raises:
            DataError: ``pairs`` has another length than ``texts``, something is not a string, or ``max_length`` leaves
                no room for a token.
        """
        self._truncate(max_length, special=2 if pairs is None else 3)
        _check_texts(texts, pairs)
        inputs = list(texts) if pairs is None else list(zip(texts, pairs, strict=True))
        return [
            Encoding(np.array(found.ids, np.int64), np.array(found.type_ids, np.int64), bool(found.overflowing))
            for found in self._encode_batch(inputs)
        ]

    def _truncate(self, max_length: int, special: int) -> None:
        if max_length <= special:
            raise DataError(f"max_length {max_length} leaves no room for text beside {special} special tokens")
        if max_length != self._max_length:
            self._backend.enable_truncation(max_length, strategy="longest_first")
            self._max_length = max_length

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Tokenizer:
        """Load ``tokenizer.json``, or else ``vocab.txt``; ``tokenizer_config.json`` is heeded where it is there.

        Raises:
            WeightsError: no such folder, neither file, a damaged one, or a special token is missing.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise WeightsError(f"{folder}: no such folder")
        settings = _read_settings(folder / SETTINGS_FILE)
        if (folder / TOKENIZER_FILE).is_file():
            path, backend = folder / TOKENIZER_FILE, _from_json(folder / TOKENIZER_FILE)
        elif (folder / VOCAB_FILE).is_file():
            path, backend = folder / VOCAB_FILE, _from_vocab(folder / VOCAB_FILE, settings)
        else:
            raise WeightsError(f"{folder}: holds neither {TOKENIZER_FILE} nor {VOCAB_FILE}")
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
        self._max_length = None
        put_file(folder / TOKENIZER_FILE, self._backend.to_str(pretty=True).encode())
        put_file(folder / SETTINGS_FILE, (json.dumps(self.settings, indent=2, ensure_ascii=False) + "\n").encode())


def _token(settings: dict[str, Any], part: str) -> str:
    """The name of a special token; Hugging Face stores it as a string or as an object with ``content``."""
    token = settings.get(part) or SPECIAL_TOKENS[part]
    return token["content"] if isinstance(token, dict) else token


def _check_texts(texts: Sequence[str], pairs: Sequence[str] | None) -> None:
    if isinstance(texts, str) or isinstance(pairs, str):
        raise DataError("give a list of texts, not one text")
    if pairs is not None and len(texts) != len(pairs):
        raise DataError(f"{len(texts)} texts and {len(pairs)} pairs do not match")
    for name, values in (("text", texts), ("pair", pairs or ())):
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise DataError(f"{name} {index} is a {type(value).__name__}, not a string")


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


def _from_vocab(path: Path, settings: dict[str, Any]) -> tokenizers.Tokenizer:
    """BERT's tokenizer of a ``vocab.txt``: a token a line, its id is the line's number from 0."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path}: cannot read: {error}") from error
    vocab = {token.strip(): index for index, token in enumerate(lines)}
    backend = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token=_token(settings, "unk_token")))
    backend.add_special_tokens([token for part in SPECIAL_TOKENS if (token := _token(settings, part)) in vocab])
    backend.normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocab.get(token, 0)) for token in (_token(settings, "sep_token"), _token(settings, "cls_token"))]
    backend.post_processor = processors.BertProcessing(*ends)
    return backend
