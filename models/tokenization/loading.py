"""Which files of a folder make which tokenizer. Without Paddle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import models

from onion.errors import WeightsError
from onion.models.families import family_in
from onion.models.formats.paths import naming
from onion.models.tokenization import byte_bpe, sentencepiece, wordpiece
from onion.models.tokenization.pre_tokenizer import Preparation
from onion.models.tokenization.vocabulary import read_vocab, special_ids, special_tokens
from onion.models.xlnet import tokenizer as xlnet_tokenizer

TOKENIZER_FILE = "tokenizer.json"
SETTINGS_FILE = "tokenizer_config.json"
VOCAB_FILE = "vocab.txt"

# Flags of tokenizer_config.json that determine how texts are split; those of the second line may be null.
FLAGS = ("do_lower_case", "tokenize_chinese_chars")
FLAGS_OR_NULL = ("strip_accents", "add_prefix_space", "keep_accents")

# Special tokens of a tokenizer.json by the type of its model.
DEFAULTS = {models.BPE: byte_bpe.SPECIAL_TOKENS, models.Unigram: xlnet_tokenizer.SPECIAL_TOKENS}

Loaded = tuple[tokenizers.Tokenizer, Preparation | None]


def find(folder: Path, settings: Mapping[str, Any], style: str | None) -> tuple[Path, Callable[[], Loaded]]:
    """Return the file that determines the tokenizer, and a function that creates it.

    ``settings`` is the content of ``tokenizer_config.json``; ``style`` one of
    :data:`onion.models.tokenization.wordpiece.STYLES`, or None for that of the files.
    """
    path, vocab = folder / TOKENIZER_FILE, folder / VOCAB_FILE
    tiny = style is None and _is_tiny(folder, settings)
    if style is None and not tiny and path.is_file():
        return path, lambda: (_from_json(path), None)
    _check_flags(folder / SETTINGS_FILE, settings)  # not used by tokenizer.json
    own = family_in(folder).tokenizer
    if style is None and own is not None and (folder / own.file).is_file():
        special = special_tokens(settings, own.special_tokens)
        files = folder / own.file, special, settings
        return files[0], lambda: (own.build(*files), None if own.prepare is None else own.prepare(*files))
    special = special_tokens(settings, wordpiece.SPECIAL_TOKENS)
    if tiny:
        return folder / sentencepiece.MODEL_FILE, lambda: sentencepiece.build(folder, special, settings)
    if vocab.is_file():
        chosen = style or wordpiece.CLASSES.get(str(settings.get("tokenizer_class")), "wordpiece")
        return vocab, lambda: (wordpiece.build(read_vocab(vocab, special.values()), special, settings, chosen), None)
    if style is not None:
        raise WeightsError(f"{folder}: style {style!r} needs {VOCAB_FILE}, which is missing")
    if (folder / byte_bpe.VOCAB_FILE).is_file() or (folder / byte_bpe.MERGES_FILE).is_file():
        special = special_tokens(settings, byte_bpe.SPECIAL_TOKENS)
        return folder / byte_bpe.VOCAB_FILE, lambda: (byte_bpe.build(folder, special, settings), None)
    raise WeightsError(f"{folder}: contains neither {TOKENIZER_FILE} nor {VOCAB_FILE}")


def _is_tiny(folder: Path, settings: Mapping[str, Any]) -> bool:
    """Return whether this is ERNIE tiny's; static-graph ERNIE's folders have no settings."""
    if settings.get("tokenizer_class") == sentencepiece.TOKENIZER_CLASS:
        return True
    return (folder / sentencepiece.MODEL_FILE).is_file() and not (folder / TOKENIZER_FILE).is_file()


def read_settings(path: Path) -> dict[str, Any]:
    """Read ``tokenizer_config.json``, empty if it is absent; raise a WeightsError if it is damaged."""
    if not path.is_file():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError(f"{path}: not a JSON file: {error}") from error
    if not isinstance(settings, dict):
        raise WeightsError(f"{path}: contains a JSON {type(settings).__name__}, not an object")
    with naming(path):
        special_tokens(settings, wordpiece.SPECIAL_TOKENS)
    return settings


def _check_flags(path: Path, settings: Mapping[str, Any]) -> None:
    for key in (*FLAGS, *FLAGS_OR_NULL):
        value = settings.get(key, False)
        if not (isinstance(value, bool) or (value is None and key in FLAGS_OR_NULL)):
            raise WeightsError(f"{path}: {key} is {json.dumps(value)[:60]}, not true or false")


def _from_json(path: Path) -> tokenizers.Tokenizer:
    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
        backend.no_truncation()
        backend.no_padding()  # which could fill the memory
        for pair in (None, ""):  # fails if the special tokens of its template are missing
            backend.encode("", pair)
    except BaseException as error:
        # The library raises plain Exception for every damage. A panic of its Rust code is not an Exception, and its
        # class cannot be imported.
        if not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
            raise
        raise WeightsError(f"{path}: damaged or not a tokenizer: {error}") from error
    return backend


def special_parts(backend: tokenizers.Tokenizer, settings: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, int]]:
    """Return part -> token, and part -> id, of a tokenizer's special tokens."""
    names = special_tokens(settings, DEFAULTS.get(type(backend.model), wordpiece.SPECIAL_TOKENS))
    return names, special_ids(backend, names)
