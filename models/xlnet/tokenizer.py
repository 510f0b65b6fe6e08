"""XLNet's tokenizer: ``spiece.model``, a SentencePiece unigram model, by the ``tokenizers`` library. Without Paddle.

A text is ``a <sep> <cls>``, a pair ``a <sep> b <sep> <cls>``; the types are 0 for the first text, 1 for the second and
2 for ``<cls>``. A piece that ends in a digit and a comma ("9,") is used only if no others are possible.

Sources: transformers ``models/xlnet/tokenization_xlnet.py`` and ``convert_slow_tokenizer.py``, whose ``tokenizer.json``
this equals; zihangdai/xlnet ``prepro_utils.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from onion.errors import WeightsError
from onion.models.tokenization.sentencepiece_model import CONTROL, USER_DEFINED, Piece, SentencePieceModel, read_model

# Part -> token, unless tokenizer_config.json has another one.
SPECIAL_TOKENS = {
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "cls_token": "<cls>",
    "sep_token": "<sep>",
    "mask_token": "<mask>",
}
SPACE = "\u2581"
PENALTY = 100.0
"""Subtracted from the score of a piece that ends in a digit and a comma; more than any alternative costs."""


def build(path: Path, special: Mapping[str, str], settings: Mapping[str, Any]) -> tokenizers.Tokenizer:
    """Build the tokenizer of a ``spiece.model``.

    ``special`` maps parts (``cls_token``, ...) to tokens; ``do_lower_case`` and ``keep_accents`` (default false) are
    read from the settings of ``tokenizer_config.json``.
    """
    model = read_model(path)
    try:
        return _built(model, special, settings)
    except BaseException as error:
        # As for a tokenizer.json: a panic of the library's Rust code is not an Exception.
        if isinstance(error, WeightsError) or not (
            isinstance(error, Exception) or type(error).__name__ == "PanicException"
        ):
            raise
        raise WeightsError(f"{path}: damaged, or not a SentencePiece model ({error}); download it again") from error


def _built(model: SentencePieceModel, special: Mapping[str, str], settings: Mapping[str, Any]) -> tokenizers.Tokenizer:
    known = {piece.text: index for index, piece in enumerate(model.pieces)}
    missing = [token for token in special.values() if token not in known]
    if missing:
        raise WeightsError(f"special tokens are missing in the vocabulary: {', '.join(missing)}")
    scores = [(piece.text, _score(piece)) for piece in model.pieces]
    backend = tokenizers.Tokenizer(models.Unigram(scores, model.unknown, byte_fallback=False))
    own = [piece.text for piece in model.pieces if piece.kind in (CONTROL, USER_DEFINED)]
    # The mask replaces a word with the space before it.
    tokens = dict.fromkeys([*special.values(), *own])
    backend.add_special_tokens([AddedToken(token, lstrip=token == special["mask_token"]) for token in tokens])
    backend.normalizer = _normalizer(settings, model.charsmap)
    marked = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), marked])
    backend.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")
    sep, cls = special["sep_token"], special["cls_token"]
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A:0 {sep}:0 {cls}:2",
        pair=f"$A:0 {sep}:0 $B:1 {sep}:1 {cls}:2",
        special_tokens=[(sep, known[sep]), (cls, known[cls])],
    )
    backend.encode("a", "b")  # fails if the table of characters is damaged
    return backend


def _score(piece: Piece) -> float:
    text = piece.text
    return piece.score - PENALTY if len(text) > 1 and text[-1] == "," and text[-2].isdigit() else piece.score


def _normalizer(settings: Mapping[str, Any], charsmap: bytes) -> normalizers.Normalizer:
    steps: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if not settings.get("keep_accents", False):
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if settings.get("do_lower_case", False):
        steps.append(normalizers.Lowercase())
    if charsmap:
        steps.append(normalizers.Precompiled(charsmap))
    return normalizers.Sequence(steps)
