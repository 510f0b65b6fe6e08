"""Parameter names: Hugging Face's BERT -> ours, which are PaddleNLP's.

Source of the table: PaddleNLP ``transformers/bert/converter.py`` and transformers ``models/bert/modeling_bert.py``.
"""

from __future__ import annotations

import re

# In task models the encoder's names stand behind one of these.
PREFIXES = ("bert.",)

# Parts of a checkpoint that are not the encoder's and may be there: the heads of pre-training and of the tasks, and a
# buffer that older versions of transformers stored.
NOT_THE_ENCODER = re.compile(
    r"(cls|classifier|qa_outputs|dropout)\.|embeddings\.position_ids$|embeddings\.token_type_ids$"
)

# In this order; weights converted from TensorFlow call a LayerNorm's weight gamma and its bias beta.
_HUGGING_FACE = [
    (re.compile(r"LayerNorm\.gamma$"), "LayerNorm.weight"),
    (re.compile(r"LayerNorm\.beta$"), "LayerNorm.bias"),
    (re.compile(r"^embeddings\.LayerNorm\."), "embeddings.layer_norm."),
    (re.compile(r"^encoder\.layer\.(\d+)\.attention\.self\.query\."), r"encoder.layers.\1.self_attn.q_proj."),
    (re.compile(r"^encoder\.layer\.(\d+)\.attention\.self\.key\."), r"encoder.layers.\1.self_attn.k_proj."),
    (re.compile(r"^encoder\.layer\.(\d+)\.attention\.self\.value\."), r"encoder.layers.\1.self_attn.v_proj."),
    (re.compile(r"^encoder\.layer\.(\d+)\.attention\.output\.dense\."), r"encoder.layers.\1.self_attn.out_proj."),
    (re.compile(r"^encoder\.layer\.(\d+)\.attention\.output\.LayerNorm\."), r"encoder.layers.\1.norm1."),
    (re.compile(r"^encoder\.layer\.(\d+)\.intermediate\.dense\."), r"encoder.layers.\1.linear1."),
    (re.compile(r"^encoder\.layer\.(\d+)\.output\.dense\."), r"encoder.layers.\1.linear2."),
    (re.compile(r"^encoder\.layer\.(\d+)\.output\.LayerNorm\."), r"encoder.layers.\1.norm2."),
]
_LINEAR_WEIGHT = re.compile(r"(_proj|linear[12]|pooler\.dense)\.weight$")


def without_prefix(name: str) -> str:
    """``bert.embeddings...`` -> ``embeddings...``; a name without a known prefix as it is."""
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :]
    return name


def is_hugging_face(names: list[str]) -> bool:
    """Whether the names (without prefix) are Hugging Face's rather than ours; both call the pooler the same."""
    return any(name.startswith(("encoder.layer.", "embeddings.LayerNorm.")) for name in names)


def from_hugging_face(name: str) -> tuple[str, bool]:
    """Our name of a Hugging Face parameter (without prefix), and whether its weight has to be transposed.

    PyTorch keeps the weight of a linear layer as [out, in], Paddle as [in, out].
    """
    for pattern, replacement in _HUGGING_FACE:
        name = pattern.sub(replacement, name)
    return name, _LINEAR_WEIGHT.search(name) is not None
