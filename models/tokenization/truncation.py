"""How much of a pair of texts is kept, token for token as the reference tokenizers do. Without Paddle.

The ``tokenizers`` library leaves an odd token to the longer text. google-research/bert, ERNIE, PaddleNLP, transformers
in Python take a token off the longer text again and again, of two equally long ones off the second: the odd token stays
with the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tokenizers


def kept_lengths(first: int, second: int, room: int) -> tuple[int, int]:
    """Of two texts of so many tokens that are together longer than ``room``, how many tokens of each are kept."""
    half = room // 2
    if second <= half:
        return room - second, second
    first = min(first, room - half)
    return first, room - first


def mend_pairs(
    backend: tokenizers.Tokenizer, inputs: Sequence[Any], found: list[tokenizers.Encoding], room: int, pre_split: bool
) -> list[tokenizers.Encoding]:
    """Cut anew those pairs that the library has cut otherwise than the reference.

    Args:
        backend: the tokenizer, truncation switched on.
        inputs: the pairs.
        found: their encodings.
        room: tokens that a result may have beside the special ones.
        pre_split: the texts are lists of words.

    Returns:
        The encodings with those that were cut anew in their places.
    """
    if room % 2 == 0:  # no odd token, no difference
        return found
    cut = [index for index, one in enumerate(found) if one.overflowing]
    firsts, seconds = (
        backend.encode_batch([inputs[i][part] for i in cut], is_pretokenized=pre_split, add_special_tokens=False)
        for part in (0, 1)
    )
    found = list(found)
    for index, first, second in zip(cut, firsts, seconds, strict=True):
        keep = kept_lengths(len(first), len(second), room)
        for one, length in zip((first, second), keep, strict=True):
            one.truncate(length)
        found[index] = backend.post_process(first, second)
    return found
