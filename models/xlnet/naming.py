"""Parameter names of XLNet: onion's are PaddleNLP's, which equal Hugging Face's except for the heads. Without Paddle.

Hugging Face stores the matrices of attention as [hidden, heads, head size], PaddleNLP and onion as [hidden, heads *
head size]. Its linear weights are [out, in], onion's [in, out].

Sources: transformers ``models/xlnet/modeling_xlnet.py``; PaddleNLP ``transformers/xlnet/{modeling,converter}.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from onion.models.pretrained_config import PretrainedConfig

# The pooler: Hugging Face's name and PaddleNLP's, and onion's.
SUMMARY = {"huggingface": "sequence_summary.summary.", "paddlenlp": "classifier.dense."}
POOLER = "pooler.dense."
HEADS = re.compile(r"(lm_loss|logits_proj|classifier|qa_outputs|start_logits|end_logits|answer_class)\.")
ATTENTION = re.compile(r"rel_attn\.[qkvor]$")
LINEAR_WEIGHT = re.compile(r"(ff\.layer_[12]|pooler\.dense)\.weight$")


class XLNetNaming:
    """The :class:`onion.models.formats.name_mapping.Naming` of XLNet."""

    prefixes: tuple[str, ...] = ("transformer.",)

    def is_hugging_face(self, stored: Mapping[str, np.ndarray]) -> bool:
        """Recognize Hugging Face's files by the matrices of attention, which have three axes."""
        return any(ATTENTION.search(name) and array.ndim == 3 for name, array in stored.items())

    def to_ours(self, name: str, array: np.ndarray, layout: str) -> tuple[str, np.ndarray] | None:
        """See ``Naming``."""
        name = name.removeprefix(self.prefixes[0])
        for summary in SUMMARY.values():
            if name.startswith(summary):
                name = POOLER + name.removeprefix(summary)
        if HEADS.match(name):
            return None
        if ATTENTION.search(name) and array.ndim == 3:
            return name, array.reshape(len(array), -1)
        return name, array.T if layout == "huggingface" and LINEAR_WEIGHT.search(name) else array

    def to_theirs(
        self, name: str, array: np.ndarray, layout: str, prefix: str, config: PretrainedConfig | None
    ) -> tuple[str, np.ndarray]:
        """See ``Naming``."""
        if layout == "huggingface":
            if ATTENTION.search(name):
                assert config is not None
                array = array.reshape(len(array), config.num_attention_heads, -1)
            elif LINEAR_WEIGHT.search(name):
                array = array.T
        if name.startswith(POOLER) and layout in SUMMARY:
            return SUMMARY[layout] + name.removeprefix(POOLER), array
        return prefix + name, array
