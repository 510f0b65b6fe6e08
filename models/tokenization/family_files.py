"""A tokenizer file that only one family of encoders has. Without Paddle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import tokenizers


@attrs.frozen
class FamilyTokenizer:
    """A file that is a tokenizer in folders of one family, if there is no ``tokenizer.json``.

    Attributes:
        file: its name.
        special_tokens: part (``cls_token``, ...) -> token, unless ``tokenizer_config.json`` has another one.
        build: creates a tokenizer of the library from the file, the special tokens and ``tokenizer_config.json``;
            raises WeightsError if the file is damaged.
    """

    file: str
    special_tokens: Mapping[str, str]
    build: Callable[[Path, Mapping[str, str], Mapping[str, Any]], tokenizers.Tokenizer]
