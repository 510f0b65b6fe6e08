"""Tokenizers with a ``vocab.txt``: BERT's and ERNIE's WordPiece, ERNIE's character tokenizers. Without Paddle.

Sources: google-research/bert tokenization.py; PaddlePaddle/ERNIE (static graph) tokenization.py, utils/data.py;
PaddleNLP 2.8.1 transformers/tokenizer_utils.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors

from onion.errors import WeightsError

# Part -> token, unless tokenizer_config.json has another one.
SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
LONGEST_WORD = 100  # characters; a longer word is the unknown token
STYLES = ("wordpiece", "symbols", "spaces", "words", "characters", "sentencepiece-characters")
CLASSES = {"ErnieTokenizer": "symbols"}  # tokenizer_class in tokenizer_config.json -> style, where not "wordpiece"
# Symbols of PaddleNLP 2.8.1 (_is_symbol in transformers/tokenizer_utils.py).
SYMBOLS = "[\\p{S}\u00ad\u00b2\u00ba\u3007\u00b5\u00d8\u014b\u01b1]"


def build(
    vocab: dict[str, int], special: Mapping[str, str], settings: Mapping[str, Any], style: str
) -> tokenizers.Tokenizer:
    """Build the tokenizer of a vocabulary.

    Args:
        vocab: token -> id.
        special: part (``cls_token``, ...) -> token.
        settings: of ``tokenizer_config.json``: ``do_lower_case``, ``strip_accents``, ``tokenize_chinese_chars``.
        style: how texts are split before the greedy longest match:

            - ``"wordpiece"``: BERT's: at whitespace, punctuation and around Chinese characters; control characters are
              dropped.
            - ``"symbols"``: the same, and at symbols (°, ×, →, €): PaddleNLP's for ERNIE.
            - ``"spaces"``: at whitespace only (ERNIE's tokenization.CharTokenizer), for texts that are already split.
            - ``"words"``: at whitespace only; each word is in the vocabulary as a whole or unknown (ERNIE's
              SpaceTokenizer, which adds an unknown word for each additional space).
            - ``"characters"``: runs of ASCII letters and digits, any other character alone (utils.data.CharTokenizer).
            - ``"sentencepiece-characters"``: the same for a vocabulary that marks the beginning of a word with U+2581
              instead of its inside with ``##``.

    Raises:
        WeightsError: the style is unknown.
    """
    if style not in STYLES:
        raise WeightsError(f"unknown tokenizer style {style!r}; known are {', '.join(STYLES)}")
    backend = tokenizers.Tokenizer(_model(vocab, special["unk_token"], style))
    backend.add_special_tokens([token for token in special.values() if token in vocab])
    if (normalizer := _normalizer(settings, style)) is not None:  # not every version accepts None
        backend.normalizer = normalizer
    backend.pre_tokenizer = splitter(style)
    ends = [(token, vocab.get(token, 0)) for token in (special["sep_token"], special["cls_token"])]
    backend.post_processor = processors.BertProcessing(*ends)
    return backend


def _model(vocab: dict[str, int], unknown: str, style: str) -> models.Model:
    if style == "words":
        return models.WordLevel(vocab, unk_token=unknown)
    if style == "sentencepiece-characters":  # the mark counts as a character
        return models.WordPiece(
            vocab, unk_token=unknown, continuing_subword_prefix="", max_input_chars_per_word=LONGEST_WORD + 1
        )
    return models.WordPiece(vocab, unk_token=unknown, max_input_chars_per_word=LONGEST_WORD)


def _normalizer(settings: Mapping[str, Any], style: str) -> normalizers.Normalizer | None:
    lower = settings.get("do_lower_case", True)
    if style not in ("wordpiece", "symbols"):
        return normalizers.Lowercase() if lower else None
    return normalizers.BertNormalizer(
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=lower,
    )


def splitter(style: str) -> pre_tokenizers.PreTokenizer:
    """Return the pre-tokenizer of a style of :func:`build`."""
    if style == "wordpiece":
        return pre_tokenizers.BertPreTokenizer()
    if style == "symbols":
        symbols = pre_tokenizers.Split(Regex(SYMBOLS), behavior="isolated")
        return pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), symbols])
    if style in ("spaces", "words"):
        return pre_tokenizers.WhitespaceSplit()
    words = pre_tokenizers.Split(Regex(r"[a-zA-Z0-9]+|\S"), behavior="removed", invert=True)
    if style == "characters":
        return words
    mark = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always", split=False)
    return pre_tokenizers.Sequence([words, mark])
