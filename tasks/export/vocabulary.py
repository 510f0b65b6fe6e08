"""A trained model that knows the tokens of some texts only, for a smaller export."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from onion import Forward, Runner
from onion.data.files import iter_lines
from onion.errors import DataError
from onion.items.gradient_machine import load_network
from onion.models.auto import new_encoder
from onion.models.encoder import Encoder
from onion.models.pretrained_encoder import arrays_of
from onion.models.tokenization.pre_tokenizer import LONGEST
from onion.models.tokenizer import Tokenizer
from onion.tasks.export.samples import words_of
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.networks.paths import ENCODER
from onion.tasks.task import MASKED_TOKENS
from onion.tasks.token_classification.tagged_text import JOINT

TABLE = f"{ENCODER}embeddings.word_embeddings.weight"
"""The parameter with a row for each token."""

AT_ONCE = 1000
"""Lines that are tokenized together."""


def with_vocabulary_of(predictor: Predictor, path: Path) -> Predictor:
    """Return a predictor that knows the tokens of a file, and the characters that they are made of.

    To texts of these tokens it answers as before; other words it spells with smaller pieces.

    Args:
        predictor: of a run over an encoder with WordPiece; it stays as it is.
        path: texts in lines, whatever else these hold: a plain text, a table, JSON lines.

    Raises:
        DataError: the file cannot be read, or has no words; or as :func:`check_cuttable`.
    """
    check_cuttable(predictor)
    network, config = predictor.network, predictor.network.encoder.config
    tokenizer, kept = predictor.tokenizer.cut(tokens_of(predictor.tokenizer, path))
    if not words_of(tokenizer):
        raise DataError(f"{path} has no word that the tokenizer knows; give a file of texts")
    sizes = config.changed(vocab_size=len(kept), pad_token_id=tokenizer.pad_id)
    smaller = predictor.task.network(new_encoder(sizes))
    arrays = arrays_of(network)
    load_network(smaller, {**arrays, TABLE: arrays[TABLE][kept]})
    return Predictor(predictor.task, Runner(Forward(smaller)), tokenizer)


def check_cuttable(predictor: Predictor) -> None:
    """Refuse a predictor whose vocabulary cannot be cut.

    Raises:
        DataError: its encoder or its tokenizer is of another kind, or its task predicts tokens.
    """
    config = predictor.network.encoder.config
    if predictor.task.head_over == MASKED_TOKENS:
        raise DataError(f"the vocabulary of {predictor.task.name} cannot be cut: its tokens are what the task predicts")
    if not isinstance(predictor.network.encoder, Encoder) or config.position_offset:
        raise DataError(
            f"the vocabulary of {config.model_type} encoders cannot be cut, only that of BERT, ERNIE and ELECTRA can"
        )
    predictor.tokenizer.cut(())


def tokens_of(tokenizer: Tokenizer, path: Path) -> set[int]:
    """Return the ids of all tokens of a file.

    Raises:
        DataError: it cannot be read.
    """
    found: set[int] = set()
    texts = (text for _, line in iter_lines(path) for text in texts_in(line))
    while some := list(islice(texts, AT_ONCE)):
        for encoding in tokenizer(some, max_length=LONGEST):
            found.update(np.unique(encoding.ids).tolist())
    return found


def texts_in(line: str) -> Iterator[str]:
    """Yield the texts of a line: those of an object or a list of JSON, else the line itself.

    Words that are joined, as those of ``token-classification`` in a table, are parted.
    """
    try:
        texts = list(_strings(json.loads(line))) if line.lstrip().startswith(("{", "[")) else [line]
    except (ValueError, RecursionError):
        texts = [line]
    for text in texts:
        yield text.replace(JOINT, " ")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)
