"""RoBERTa's byte-level BPE, from ``vocab.json`` and ``merges.txt``. Without Paddle.

A text is ``<s> a </s>``, a pair ``<s> a </s></s> b </s>`` (RoBERTa, Liu et al. 2019; fairseq); all types are 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors

from onion.errors import WeightsError

VOCAB_FILE, MERGES_FILE = "vocab.json", "merges.txt"
# Part -> token, unless tokenizer_config.json has another one.
SPECIAL_TOKENS = {
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "mask_token": "<mask>",
}


def build(folder: Path, special: Mapping[str, str], settings: Mapping[str, Any]) -> tokenizers.Tokenizer:
    """Build the tokenizer of a folder with ``vocab.json`` and ``merges.txt``.

    ``special`` maps parts (``cls_token``, ...) to tokens; ``add_prefix_space`` is read from the settings of
    ``tokenizer_config.json``.
    """
    for name in (VOCAB_FILE, MERGES_FILE):
        if not (folder / name).is_file():
            raise WeightsError(f"{folder}: byte-level BPE needs {VOCAB_FILE} and {MERGES_FILE}; {name} is missing")
    try:
        model = models.BPE.from_file(str(folder / VOCAB_FILE), str(folder / MERGES_FILE))
    except Exception as error:  # the library raises plain Exception for every damage
        raise WeightsError(f"{folder}: {VOCAB_FILE} and {MERGES_FILE} are damaged or do not match: {error}") from error
    backend = tokenizers.Tokenizer(model)
    known = [token for token in special.values() if backend.token_to_id(token) is not None]
    # The mask replaces a word with the space before it, which is part of byte-level tokens.
    backend.add_special_tokens([AddedToken(token, lstrip=token == special["mask_token"]) for token in known])
    prefix = bool(settings.get("add_prefix_space", False))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    backend.decoder = decoders.ByteLevel()
    sep, cls = ((token, backend.token_to_id(token) or 0) for token in (special["sep_token"], special["cls_token"]))
    backend.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=True, add_prefix_space=prefix)
    return backend
