"""Parameter names of the encoders of words: their own in every layout. Without Paddle."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from onion.models.pretrained_config import PretrainedConfig

OWN = re.compile(r"(embeddings|convolution|dense)\.(weight|bias)$|lstm\.(weight|bias)_")


class WordsNaming:
    """The :class:`onion.models.formats.name_mapping.Naming` of the encoders of words."""

    prefixes: tuple[str, ...] = ("encoder.",)

    def is_hugging_face(self, stored: Mapping[str, np.ndarray]) -> bool:
        """No library has these encoders but this one."""
        return False

    def to_ours(self, name: str, array: np.ndarray, layout: str) -> tuple[str, np.ndarray] | None:
        """See ``Naming``."""
        name = name.removeprefix(self.prefixes[0])
        return (name, array) if OWN.match(name) else None

    def to_theirs(
        self, name: str, array: np.ndarray, layout: str, prefix: str, config: PretrainedConfig | None
    ) -> tuple[str, np.ndarray]:
        """See ``Naming``."""
        return prefix + name, array
