"""Parameter names: those of Hugging Face, PaddleNLP and static ERNIE -> ours, which are PaddleNLP's, and back.

A name belongs to the encoder (``embeddings...``, ``encoder...``, ``pooler...``), to a head of pre-training
(``cls.predictions...``, ``cls.seq_relationship...``), or to neither (heads of tasks, buffers, an optimizer's state).

Sources: transformers ``models/{bert,roberta,ernie}/modeling_*.py``; PaddleNLP ``transformers/bert/converter.py`` and
``transformers/ernie/static_to_dygraph_params/match_static_to_dygraph.py``; ERNIE ``ernie/model/ernie.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import attrs
import numpy as np

if TYPE_CHECKING:
    from onion.models.pretrained_config import PretrainedConfig

# In task models the encoder's names stand behind one of these.
PREFIXES = ("bert.", "roberta.", "ernie.")
HEADS = "cls."
LM_HEAD = "lm_head."  # that of RoBERTa in Hugging Face's files

# Parts of a checkpoint that are not the encoder's and may be there: the heads of the tasks, and buffers that older
# versions of transformers stored.
NOT_THE_ENCODER = re.compile(
    r"(cls|lm_head|classifier|qa_outputs|dropout)\.|embeddings\.position_ids$|embeddings\.token_type_ids$"
)

# The parts of a layer: Hugging Face, ours, static ERNIE.
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

# The heads of pre-training: Hugging Face's BERT, ours, Hugging Face's RoBERTa.
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
    # The same parameter once more, in files that store tied parameters twice. Newer PaddleNLP has decoder.weight
    # and decoder.bias too, and RoBERTa's names; its matrices are Paddle's throughout.
    | {f"{head}.decoder.bias": "cls.predictions.decoder_bias" for head in ("cls.predictions", "lm_head")}
)
_HEADS_TO_BERT = {ours: bert for bert, ours, _ in _HEADS}
_HEADS_TO_ROBERTA = {ours: roberta for _, ours, roberta in _HEADS}
_OUR_HEAD = re.compile(
    r"cls\.(predictions\.((transform|layer_norm)\.(weight|bias)|decoder_(weight|bias))|seq_relationship\.(weight|bias))$"
)

# Matrices of linear layers: PyTorch keeps them as [out, in], Paddle as [in, out].
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


@attrs.frozen
class Place:
    """What a stored name is to us.

    Attributes:
        name: our name.
        transpose: whether the stored matrix is the other way round.
    """

    name: str
    transpose: bool = False


class Naming(Protocol):
    """What the systems call the parameters of one family, and how they store them.

    Attributes:
        prefixes: what stands before the encoder's names in models with heads.
    """

    prefixes: tuple[str, ...]

    def is_hugging_face(self, stored: Mapping[str, np.ndarray]) -> bool:
        """Tell whether arrays are stored as Hugging Face does rather than as PaddleNLP and we do."""

    def to_ours(self, name: str, array: np.ndarray, layout: str) -> tuple[str, np.ndarray] | None:
        """Our name and form of a stored parameter; None for what is neither the encoder's nor a head's that we know.

        Args:
            name: in the file.
            array: as stored.
            layout: ``"huggingface"``, ``"static"``, or one with PaddleNLP's names.
        """

    def to_theirs(
        self, name: str, array: np.ndarray, layout: str, prefix: str, config: PretrainedConfig | None
    ) -> tuple[str, np.ndarray]:
        """The name and form of one of our parameters in a layout.

        Args:
            name: ours.
            array: ours.
            layout: ``"huggingface"``, ``"paddlenlp"`` or ``"onion"``.
            prefix: one of ``prefixes``, or nothing.
            config: of the encoder.
        """


class BertNaming:
    """The :class:`Naming` of BERT, RoBERTa and ERNIE."""

    prefixes: tuple[str, ...] = PREFIXES

    def is_hugging_face(self, stored: Mapping[str, np.ndarray]) -> bool:
        """See :class:`Naming`."""
        prefixes = self.prefixes
        return is_hugging_face([name.removeprefix(prefix) for name in stored for prefix in prefixes])

    def to_ours(self, name: str, array: np.ndarray, layout: str) -> tuple[str, np.ndarray] | None:
        """See :class:`Naming`."""
        place = place_of(name, layout)
        return None if place is None else (place.name, array.T if place.transpose else array)

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


def place_of(stored: str, layout: str) -> Place | None:
    """Where a stored parameter belongs; None for what is neither the encoder's nor a head's of pre-training.

    Args:
        stored: the name in the file.
        layout: ``"huggingface"``, ``"static"``, or one with our names.
    """
    if layout == "static":
        ours = from_static(stored)
        return None if ours is None else Place(ours)
    name = _new_norm(without_prefix(stored))
    head = name if _OUR_HEAD.match(name) else _HEADS_TO_OURS.get(name)
    if head is not None:
        return Place(head, layout == "huggingface" and _LINEAR_WEIGHT.search(head) is not None)
    if NOT_THE_ENCODER.match(name):
        return None
    return Place(*from_hugging_face(name)) if layout == "huggingface" else Place(name)


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
    """Our name of an encoder's parameter of Hugging Face's (without prefix), and whether its weight is transposed."""
    name = _new_norm(name).replace("embeddings.LayerNorm.", "embeddings.layer_norm.")
    if match := _THEIR_LAYER.match(name):
        index, part, kind = match.groups()
        name = f"encoder.layers.{index}.{_LAYER_TO_OURS.get(part, part)}.{kind}"
    return name, _LINEAR_WEIGHT.search(name) is not None


def to_hugging_face(name: str, prefix: str = "") -> tuple[str, bool]:
    """Hugging Face's name of one of our parameters, and whether its weight has to be transposed.

    Args:
        name: our name.
        prefix: ``"bert."``, ``"roberta."`` and such: what a model with heads puts before the encoder's names. RoBERTa
            calls the head of masked words otherwise than the others.
    """
    transpose = _LINEAR_WEIGHT.search(name) is not None
    if name.startswith(HEADS):
        return (_HEADS_TO_ROBERTA if prefix == "roberta." else _HEADS_TO_BERT).get(name, name), transpose
    if match := _OUR_LAYER.match(name):
        index, part, kind = match.groups()
        name = f"encoder.layer.{index}.{_LAYER_TO_THEIRS.get(part, part)}.{kind}"
    return prefix + name.replace("embeddings.layer_norm.", "embeddings.LayerNorm."), transpose


def to_paddlenlp(name: str, prefix: str = "") -> str:
    """PaddleNLP's name of one of our parameters, as its version 2.8 has them; ``prefix`` as for Hugging Face."""
    if not name.startswith(HEADS):
        return prefix + name
    if prefix == "roberta.":
        return _HEADS_TO_ROBERTA.get(name, name)
    return name.replace("decoder_weight", "decoder.weight")  # its decoder_bias is decoder.bias too


def from_static(variable: str) -> str | None:
    """Our name of a variable of static ERNIE; None for a task's head, an optimizer's state and the like."""
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
    """Weights converted from TensorFlow call a LayerNorm's weight gamma and its bias beta."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
