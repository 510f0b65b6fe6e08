"""Parameter names of Hugging Face, PaddleNLP and static ERNIE -> onion's, which are PaddleNLP's, and back.

A name belongs to the encoder (``embeddings...``, ``encoder...``, ``pooler...``), to a pretraining head
(``cls.predictions...``, ``cls.seq_relationship...``), or to neither (heads of tasks, buffers, optimizer state).

Sources: transformers ``models/{bert,roberta,ernie}/modeling_*.py``; PaddleNLP ``transformers/bert/converter.py`` and
``transformers/ernie/static_to_dygraph_params/match_static_to_dygraph.py``; ERNIE ``ernie/model/ernie.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from onion.models.pretrained_config import PretrainedConfig

# Prefixes of the encoder's names in task models.
PREFIXES = ("bert.", "roberta.", "ernie.")
HEADS = "cls."
LM_HEAD = "lm_head."  # of RoBERTa in Hugging Face's files

# Parts of a checkpoint that do not belong to the encoder: heads of tasks, buffers of older versions of transformers.
NOT_THE_ENCODER = re.compile(
    r"(cls|lm_head|classifier|qa_outputs|dropout)\.|embeddings\.position_ids$|embeddings\.token_type_ids$"
)

# The parts of a layer: Hugging Face, onion, static ERNIE.
_LAYER = [
    ("attention.self.query", "self_attn.q_proj", "multi_head_att_query_fc"),
    ("attention.self.key", "self_attn.k_proj", "multi_head_att_key_fc"),
    ("attention.self.value", "self_attn.v_proj", "multi_head_att_value_fc"),
    ("attention.output.dense", "self_attn.out_proj", "multi_head_att_output_fc"),
    ("attention.output.LayerNorm", "norm1", "post_att_layer_norm"),
    ("intermediate.dense", "linear1", "ffn_fc_0"),
    ("output.dense", "linear2", "ffn_fc_1"),
    ("output.LayerNorm", "norm2", "post_ffn_layer_norm"),
]
_LAYER_TO_OURS = {theirs: ours for theirs, ours, _ in _LAYER}
_LAYER_TO_THEIRS = {ours: theirs for theirs, ours, _ in _LAYER}
_STATIC_LAYER = {static: ours for _, ours, static in _LAYER}

# The pretraining heads: Hugging Face's BERT, onion, Hugging Face's RoBERTa.
_HEADS = [
    ("cls.predictions.bias", "cls.predictions.decoder_bias", "lm_head.bias"),
    ("cls.predictions.decoder.weight", "cls.predictions.decoder_weight", "lm_head.decoder.weight"),
    ("cls.predictions.transform.dense.weight", "cls.predictions.transform.weight", "lm_head.dense.weight"),
    ("cls.predictions.transform.dense.bias", "cls.predictions.transform.bias", "lm_head.dense.bias"),
    ("cls.predictions.transform.LayerNorm.weight", "cls.predictions.layer_norm.weight", "lm_head.layer_norm.weight"),
    ("cls.predictions.transform.LayerNorm.bias", "cls.predictions.layer_norm.bias", "lm_head.layer_norm.bias"),
]
_HEADS_TO_OURS = (
    {bert: ours for bert, ours, _ in _HEADS}
    | {roberta: ours for _, ours, roberta in _HEADS}
    # The same parameter again, in files that store tied parameters twice. Newer PaddleNLP also has decoder.weight,
    # decoder.bias and RoBERTa's names, with Paddle's matrices.
    | {f"{head}.decoder.bias": "cls.predictions.decoder_bias" for head in ("cls.predictions", "lm_head")}
)
_HEADS_TO_BERT = {ours: bert for bert, ours, _ in _HEADS}
_HEADS_TO_ROBERTA = {ours: roberta for _, ours, roberta in _HEADS}
_OUR_HEAD = re.compile(
    r"cls\.(predictions\.((transform|layer_norm)\.(weight|bias)|decoder_(weight|bias))|seq_relationship\.(weight|bias))$"
)

# Matrices of linear layers: [out, in] in PyTorch, [in, out] in Paddle.
_LINEAR_WEIGHT = re.compile(r"(_proj(ect)?|linear[12]|pooler\.dense|predictions\.transform|seq_relationship)\.weight$")
_THEIR_LAYER = re.compile(r"^encoder\.layer\.(\d+)\.(.+)\.(weight|bias)$")
_OUR_LAYER = re.compile(r"^encoder\.layers\.(\d+)\.(.+)\.(weight|bias)$")

_STATIC = {
    "word_embedding": "embeddings.word_embeddings.weight",
    "pos_embedding": "embeddings.position_embeddings.weight",
    "sent_embedding": "embeddings.token_type_embeddings.weight",
    "task_embedding": "embeddings.task_type_embeddings.weight",
    "mask_lm_out_fc.b_0": "cls.predictions.decoder_bias",
}
_STATIC_PARTS = {
    "pre_encoder_layer_norm": "embeddings.layer_norm",
    "pooled_fc": "pooler.dense",
    "mask_lm_trans_fc": "cls.predictions.transform",
    "mask_lm_trans_layer_norm": "cls.predictions.layer_norm",
    "next_sent_fc": "cls.seq_relationship",
}
_STATIC_KINDS = {".w_0": ".weight", ".b_0": ".bias", "_scale": ".weight", "_bias": ".bias"}
_STATIC_NAME = re.compile(r"^(?:encoder_layer_(\d+)_)?(.+?)(\.w_0|\.b_0|_scale|_bias)$")


class Naming(Protocol):
    """The names and forms of a family's parameters in files.

    Attributes:
        prefixes: prefixes of the encoder's names in models with heads.
    """

    prefixes: tuple[str, ...]

    def is_hugging_face(self, stored: Mapping[str, np.ndarray]) -> bool:
        """Return whether arrays are stored as Hugging Face's rather than as PaddleNLP's and onion's."""

    def to_ours(self, name: str, array: np.ndarray, layout: str) -> tuple[str, np.ndarray] | None:
        """Return onion's name and form of a stored parameter; None: neither the encoder's nor a known head's.

        Args:
            name: in the file.
            array: as stored.
            layout: ``"huggingface"``, ``"static"``, or one with PaddleNLP's names.
        """

    def to_theirs(
        self, name: str, array: np.ndarray, layout: str, prefix: str, config: PretrainedConfig | None
    ) -> tuple[str, np.ndarray]:
        """Return the name and form of one of onion's parameters in a layout.

        Args:
            name: onion's.
            array: onion's.
            layout: ``"huggingface"``, ``"paddlenlp"`` or ``"onion"``.
            prefix: one of ``prefixes``, or empty.
            config: of the encoder.
        """


class BertNaming:
    """The :class:`Naming` of BERT, RoBERTa and ERNIE."""

    prefixes: tuple[str, ...] = PREFIXES

    def is_hugging_face(self, stored: Mapping[str, np.ndarray]) -> bool:
        """See :class:`Naming`."""
        names = (name.removeprefix(prefix) for name in stored for prefix in self.prefixes)
        return any(name.startswith(("encoder.layer.", "embeddings.LayerNorm.")) for name in names)

    def to_ours(self, name: str, array: np.ndarray, layout: str) -> tuple[str, np.ndarray] | None:
        """See :class:`Naming`."""
        if (place := place_of(name, layout)) is None:
            return None
        ours, transpose = place
        return ours, array.T if transpose else array

    def to_theirs(
        self, name: str, array: np.ndarray, layout: str, prefix: str, config: PretrainedConfig | None
    ) -> tuple[str, np.ndarray]:
        """See :class:`Naming`."""
        if layout == "huggingface":
            theirs, transpose = to_hugging_face(name, prefix)
            return theirs, array.T if transpose else array
        if layout == "paddlenlp":
            return to_paddlenlp(name, prefix), array
        return (name if name.startswith(HEADS) else prefix + name), array


def place_of(stored: str, layout: str) -> tuple[str, bool] | None:
    """Return onion's name of a stored one, and whether its matrix is transposed; None: no part of encoder or heads."""
    if layout == "static":
        ours = from_static(stored)
        return None if ours is None else (ours, False)
    name = _new_norm(without_prefix(stored))
    head = name if _OUR_HEAD.match(name) else _HEADS_TO_OURS.get(name)
    if head is not None:
        return head, layout == "huggingface" and _LINEAR_WEIGHT.search(head) is not None
    if NOT_THE_ENCODER.match(name):
        return None
    return from_hugging_face(name) if layout == "huggingface" else (name, False)


def without_prefix(name: str) -> str:
    """``bert.embeddings...`` -> ``embeddings...``; names without a known prefix are unchanged."""
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :]
    return name


def from_hugging_face(name: str) -> tuple[str, bool]:
    """Return onion's name of an encoder's parameter (without prefix), and whether its weight is transposed."""
    name = _new_norm(name).replace("embeddings.LayerNorm.", "embeddings.layer_norm.")
    if match := _THEIR_LAYER.match(name):
        index, part, kind = match.groups()
        name = f"encoder.layers.{index}.{_LAYER_TO_OURS.get(part, part)}.{kind}"
    return name, _LINEAR_WEIGHT.search(name) is not None


def to_hugging_face(name: str, prefix: str = "") -> tuple[str, bool]:
    """Return Hugging Face's name of a parameter, and whether its weight has to be transposed.

    With heads there is a prefix, such as ``"bert."``; with RoBERTa's, the masked LM head has other names.
    """
    transpose = _LINEAR_WEIGHT.search(name) is not None
    if name.startswith(HEADS):
        return (_HEADS_TO_ROBERTA if prefix == "roberta." else _HEADS_TO_BERT).get(name, name), transpose
    if match := _OUR_LAYER.match(name):
        index, part, kind = match.groups()
        name = f"encoder.layer.{index}.{_LAYER_TO_THEIRS.get(part, part)}.{kind}"
    return prefix + name.replace("embeddings.layer_norm.", "embeddings.LayerNorm."), transpose


def to_paddlenlp(name: str, prefix: str = "") -> str:
    """Return the name of a parameter in PaddleNLP 2.8; ``prefix`` as in :func:`to_hugging_face`."""
    if not name.startswith(HEADS):
        return prefix + name
    if prefix == "roberta.":
        return _HEADS_TO_ROBERTA.get(name, name)
    return name.replace("decoder_weight", "decoder.weight")  # its decoder_bias is decoder.bias too


def from_static(variable: str) -> str | None:
    """Return onion's name of a variable of static ERNIE; None for a task's head, optimizer state etc."""
    if variable in _STATIC:
        return _STATIC[variable]
    match = _STATIC_NAME.match(variable)
    if match is None:
        return None
    index, part, kind = match.groups()
    if index is None:
        return _STATIC_PARTS[part] + _STATIC_KINDS[kind] if part in _STATIC_PARTS else None
    return f"encoder.layers.{index}.{_STATIC_LAYER[part]}{_STATIC_KINDS[kind]}" if part in _STATIC_LAYER else None


def _new_norm(name: str) -> str:
    """Rename gamma and beta, the LayerNorm parameters in weights converted from TensorFlow."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
