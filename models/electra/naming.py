"""Parameter names of ELECTRA: BERT's, with a projection of the embeddings and a pooler that is part of a head.

Without Paddle. Sources: transformers ``models/electra/modeling_electra.py``; PaddleNLP
``transformers/electra/{modeling,converter}.py``.
"""

from __future__ import annotations

import re

import numpy as np

from onion.models.formats.name_mapping import BertNaming
from onion.models.pretrained_config import PretrainedConfig

PREFIX = "electra."
# The pooler: the reference's name and onion's.
THEIR_POOLER, OUR_POOLER = "classifier.dense.", "pooler.dense."
HEADS = re.compile(r"(discriminator_predictions|generator_predictions|generator_lm_head|sequence_summary)")


class ElectraNaming(BertNaming):
    """The :class:`onion.models.formats.name_mapping.Naming` of ELECTRA."""

    prefixes: tuple[str, ...] = (PREFIX,)

    def to_ours(self, name: str, array: np.ndarray, layout: str) -> tuple[str, np.ndarray] | None:
        """See ``Naming``."""
        name = name.removeprefix(PREFIX)
        if HEADS.match(name):
            return None
        if name.startswith(THEIR_POOLER):
            name = OUR_POOLER + name.removeprefix(THEIR_POOLER)
        return super().to_ours(name, array, layout)

    def to_theirs(
        self, name: str, array: np.ndarray, layout: str, prefix: str, config: PretrainedConfig | None
    ) -> tuple[str, np.ndarray]:
        """See ``Naming``."""
        theirs, array = super().to_theirs(name, array, layout, prefix, config)
        if name.startswith(OUR_POOLER) and layout != "onion":
            theirs = THEIR_POOLER + name.removeprefix(OUR_POOLER)
        return theirs, array
