"""Parameter names: Hugging Face's and PaddleNLP's -> ours, ours -> static ERNIE's.

A second time, and without onion's own tables: those are what is held against the references here.
"""

from __future__ import annotations

import re

# In this order.
_FROM_HUGGING_FACE = [
    (r"^(bert|roberta|ernie)\.", ""),
    (r"embeddings\.LayerNorm", "embeddings.layer_norm"),
    (r"encoder\.layer\.", "encoder.layers."),
    (r"attention\.self\.(q)uery|attention\.self\.(k)ey|attention\.self\.(v)alue", r"self_attn.\1\2\3_proj"),
    (r"attention\.output\.dense", "self_attn.out_proj"),
    (r"attention\.output\.LayerNorm", "norm1"),
    (r"intermediate\.dense", "linear1"),
    (r"output\.dense", "linear2"),
    (r"output\.LayerNorm", "norm2"),
    (r"^cls\.predictions\.transform\.LayerNorm", "cls.predictions.layer_norm"),
    (r"^cls\.predictions\.transform\.dense", "cls.predictions.transform"),
    (r"^cls\.predictions\.bias", "cls.predictions.decoder_bias"),
    (r"^lm_head\.dense", "cls.predictions.transform"),
    (r"^lm_head\.layer_norm", "cls.predictions.layer_norm"),
    (r"^lm_head\.bias", "cls.predictions.decoder_bias"),
]
_STATIC = [
    (r"^embeddings\.word_embeddings\.weight", "word_embedding"),
    (r"^embeddings\.position_embeddings\.weight", "pos_embedding"),
    (r"^embeddings\.token_type_embeddings\.weight", "sent_embedding"),
    (r"^embeddings\.task_type_embeddings\.weight", "task_embedding"),
    (r"^embeddings\.layer_norm\.", "pre_encoder_layer_norm."),
    (r"^encoder\.layers\.(\d+)\.", r"encoder_layer_\1_"),
    (r"self_attn\.q_proj", "multi_head_att_query_fc"),
    (r"self_attn\.k_proj", "multi_head_att_key_fc"),
    (r"self_attn\.v_proj", "multi_head_att_value_fc"),
    (r"self_attn\.out_proj", "multi_head_att_output_fc"),
    (r"norm1", "post_att_layer_norm"),
    (r"linear1", "ffn_fc_0"),
    (r"linear2", "ffn_fc_1"),
    (r"norm2", "post_ffn_layer_norm"),
    (r"^pooler\.dense", "pooled_fc"),
    (r"^cls\.predictions\.transform", "mask_lm_trans_fc"),
    (r"^cls\.predictions\.layer_norm", "mask_lm_trans_layer_norm"),
    (r"^cls\.predictions\.decoder_bias", "mask_lm_out_fc.b_0"),
    (r"^cls\.seq_relationship", "next_sent_fc"),
    (r"_layer_norm\.weight$", "_layer_norm_scale"),
    (r"_layer_norm\.bias$", "_layer_norm_bias"),
    (r"\.weight$", ".w_0"),
    (r"\.bias$", ".b_0"),
]


def from_hugging_face(name: str) -> str:
    """Our name of a parameter of transformers'."""
    return _renamed(name, _FROM_HUGGING_FACE)


def from_paddlenlp(name: str) -> str:
    """Our name of a parameter of PaddleNLP's: without the model's name before it; RoBERTa's head has its own."""
    return _renamed(name, [pair for pair in _FROM_HUGGING_FACE if pair[0].startswith(("^(", "^lm"))])


def to_static(name: str) -> str:
    """Static ERNIE's name of one of our parameters."""
    return _renamed(name, _STATIC)


def _renamed(name: str, pairs: list[tuple[str, str]]) -> str:
    for pattern, replacement in pairs:
        name = re.sub(pattern, replacement, name)
    return name
