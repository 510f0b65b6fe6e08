"""The config of ELECTRA: BERT's, and the width of the embeddings. Without Paddle.

Sources: transformers ``models/electra/configuration_electra.py``; PaddleNLP 2.8.1
``transformers/electra/configuration.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from onion.models.config import MEANING, EncoderConfig
from onion.models.formats.config_readers import MUST_BE, refuse_variants
from onion.models.pretrained_config import one_of, whole

# Settings of the heads of tasks and of pretraining.
_HARMLESS = """
    summary_type summary_use_proj summary_activation summary_last_dropout gen_weight disc_weight
    generator_size generator_hidden_size
"""


@attrs.frozen(kw_only=True)
class ElectraConfig(EncoderConfig):
    """Sizes and settings of an ELECTRA.

    Attributes:
        embedding_size: width of the embeddings; if it is not the hidden size, a linear layer follows them.
        pool_act: activation of the pooler.
    """

    meaning_fields: ClassVar[tuple[str, ...]] = MEANING
    passed_over: ClassVar[frozenset[str]] = frozenset(_HARMLESS.split())

    embedding_size: int = attrs.field(validator=whole(1))
    model_type: str = attrs.field(default="electra", validator=one_of("electra"))
    position_offset: int = attrs.field(default=0, validator=whole(0))  # here, so that model_type comes before it
    pool_act: str = attrs.field(default="gelu", validator=one_of("gelu"))

    @classmethod
    def translate(cls, values: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Return a flat ``config.json`` as it is."""
        refuse_variants(values, MUST_BE)
        return dict(values)
