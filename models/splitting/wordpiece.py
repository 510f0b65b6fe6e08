"""Tokenizers made of a ``vocab.txt``: BERT's and ERNIE's WordPiece, ERNIE's character tokenizers. Without Paddle.

Sources: google-research/bert tokenization.py; PaddlePaddle/ERNIE (static graph) tokenization.py, utils/data.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors

from onion.errors import WeightsError

# Which token plays which part, unless tokenizer_config.json says otherwise.
SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
LONGEST_WORD = 100  # characters; a longer word is the unknown token
STYLES = ("wordpiece", "spaces", "characters", "sentencepiece-characters")


def build(
    vocab: dict[str, int], special: Mapping[str, str], settings: Mapping[str, Any], style: str
) -> tokenizers.Tokenizer:
    """Build the tokenizer of a vocabulary.

    Args:
        vocab: token -> id.
        special: part (``cls_token``, ...) -> token.
        settings: of ``tokenizer_config.json``: ``do_lower_case``, ``strip_accents``, ``tokenize_chinese_chars``.
        style: how texts are split before the greedy longest match:

            - ``"wordpiece"``: BERT's: at whitespace, punctuation and around Chinese characters; control characters go.
            - ``"spaces"``: at whitespace only (ERNIE's tokenization.CharTokenizer), for texts that are split already.
            - ``"characters"``: runs of ASCII letters and digits, any other character alone (utils.data.CharTokenizer).
            - ``"sentencepiece-characters"``: the same for a vocabulary that marks the beginning of a word with U+2581
              instead of its inside with ``##``.

    Raises:
        WeightsError: no such style.
    """
    if style not in STYLES:
        raise WeightsError(f"no tokenizer style {style!r}; there are {', '.join(STYLES)}")
    unknown = special["unk_token"]
    marked = style == "sentencepiece-characters"
    backend = tokenizers.Tokenizer(
        models.WordPiece(vocab, unk_token=unknown, continuing_subword_prefix="", max_input_chars_per_word=101)
        if marked  # the mark in front counts as a character
        else models.WordPiece(vocab, unk_token=unknown, max_input_chars_per_word=LONGEST_WORD)
    )
    backend.add_special_tokens([token for token in special.values() if token in vocab])
    backend.normalizer = _normalizer(settings, style)
    backend.pre_tokenizer = _splitter(style)
    ends = [(token, vocab.get(token, 0)) for token in (special["sep_token"], special["cls_token"])]
    backend.post_processor = processors.BertProcessing(*ends)
    return backend


def _normalizer(settings: Mapping[str, Any], style: str) -> normalizers.Normalizer | None:
    lower = settings.get("do_lower_case", True)
    if style != "wordpiece":
        return normalizers.Lowercase() if lower else None
    return normalizers.BertNormalizer(
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=lower,
    )


def _splitter(style: str) -> pre_tokenizers.PreTokenizer:
    if style == "wordpiece":
        return pre_tokenizers.BertPreTokenizer()
    if style == "spaces":
        return pre_tokenizers.WhitespaceSplit()
    words = pre_tokenizers.Split(Regex(r"[a-zA-Z0-9]+|\S"), behavior="removed", invert=True)
    if style == "characters":
        return words
    mark = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always", split=False)
    return pre_tokenizers.Sequence([words, mark])
