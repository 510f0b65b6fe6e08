"""The config of XLNet. Without Paddle.

Sources: transformers ``models/xlnet/configuration_xlnet.py``; PaddleNLP 2.8.1 ``transformers/xlnet/configuration.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from onion.errors import WeightsError
from onion.models.config import ACTIVATIONS
from onion.models.formats.config_readers import refuse_variants
from onion.models.pretrained_config import (
    PretrainedConfig,
    Shape,
    above,
    linear_shapes,
    norm_shapes,
    number,
    one_of,
    whole,
)

# Name of a field -> name in transformers and PaddleNLP.
NAMES = {
    "hidden_size": "d_model",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "intermediate_size": "d_inner",
    "hidden_act": "ff_activation",
    "hidden_dropout_prob": "dropout",
}
# The only supported values.
MUST_BE = {
    "attn_type": "bi",
    "bi_data": False,
    "untie_r": True,
    "summary_type": "last",
    "summary_use_proj": True,
    "summary_activation": "tanh",
}
# Settings of the memory of earlier segments, which is not used here, and of the heads of tasks.
_HARMLESS = """
    d_head mem_len reuse_len use_mems_eval use_mems_train same_length start_n_top end_n_top summary_last_dropout
    summary_proj_to_labels classfier_dropout
"""
NO_LIMIT = 1 << 31
"""Tokens: positions are relative, so only the memory limits the length of a text."""

_positive = whole(1)


@attrs.frozen(kw_only=True)
class XLNetConfig(PretrainedConfig):
    """Sizes and settings of an XLNet, with the names of the other families.

    Attributes:
        clamp_len: maximum distance; larger ones count as it; <= 0: no maximum.
        hidden_dropout_prob: dropout everywhere, including attention.

    Raises:
        WeightsError: a value is out of range, or two values contradict each other.
    """

    meaning_fields: ClassVar[tuple[str, ...]] = ("hidden_act", "layer_norm_eps", "clamp_len", "pad_token_id")
    passed_over: ClassVar[frozenset[str]] = frozenset(_HARMLESS.split()) | frozenset(MUST_BE)

    vocab_size: int = attrs.field(validator=_positive)
    hidden_size: int = attrs.field(validator=_positive)
    num_hidden_layers: int = attrs.field(validator=_positive)
    num_attention_heads: int = attrs.field(validator=_positive)
    intermediate_size: int = attrs.field(validator=_positive)
    hidden_act: str = attrs.field(default="gelu", validator=one_of(*ACTIVATIONS))
    hidden_dropout_prob: float = attrs.field(default=0.1, validator=number(0, 1))
    initializer_range: float = attrs.field(default=0.02, validator=number(0, 1000))
    layer_norm_eps: float = attrs.field(default=1e-12, validator=above(0, 1))
    clamp_len: int = attrs.field(default=-1, validator=whole(-1))
    pad_token_id: int = attrs.field(default=5, validator=whole(0))
    model_type: str = attrs.field(default="xlnet", validator=one_of("xlnet"))

    def __attrs_post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads or self.hidden_size % 2:
            raise WeightsError(
                f"hidden_size {self.hidden_size} is not even, or not divisible by num_attention_heads "
                f"{self.num_attention_heads}"
            )
        if self.pad_token_id >= self.vocab_size:
            raise WeightsError(f"pad_token_id {self.pad_token_id} is outside the vocabulary of {self.vocab_size}")

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def max_length(self) -> int:
        """No limit."""
        return NO_LIMIT

    def shapes(self) -> dict[str, Shape]:
        """Return name -> shape of every parameter of the encoder."""
        width, heads, size = self.hidden_size, self.num_attention_heads, self.head_size
        shapes: dict[str, Shape] = {"mask_emb": (1, 1, width), "word_embedding.weight": (self.vocab_size, width)}
        for index in range(self.num_hidden_layers):
            attention, ff = f"layer.{index}.rel_attn", f"layer.{index}.ff"
            shapes |= {f"{attention}.{part}": (width, width) for part in "qkvor"}
            shapes |= {f"{attention}.{part}": (heads, size) for part in ("r_r_bias", "r_s_bias", "r_w_bias")}
            shapes |= {f"{attention}.seg_embed": (2, heads, size)} | norm_shapes(f"{attention}.layer_norm", width)
            shapes |= linear_shapes(f"{ff}.layer_1", width, self.intermediate_size)
            shapes |= linear_shapes(f"{ff}.layer_2", self.intermediate_size, width) | norm_shapes(
                f"{ff}.layer_norm", width
            )
        return shapes | linear_shapes("pooler.dense", width, width)

    @classmethod
    def translate(cls, values: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Convert a flat ``config.json`` to the names of the fields."""
        refuse_variants(values, MUST_BE)
        ours = {theirs: ours for ours, theirs in NAMES.items()}
        found = {ours.get(key, key): value for key, value in values.items()}
        if "n_token" in found:  # the first configs
            found.setdefault("vocab_size", found.pop("n_token"))
        heads, size, width = (found.get(key) for key in ("num_attention_heads", "d_head", "hidden_size"))
        if isinstance(size, int) and isinstance(heads, int) and size * heads != width:
            raise WeightsError(f"d_head {size} times n_head {heads} is not d_model {width}")
        return found

    def to_dict(self) -> dict[str, Any]:
        """The config as JSON values, with the names of transformers and PaddleNLP."""
        return {NAMES.get(name, name): value for name, value in attrs.asdict(self).items()} | MUST_BE
