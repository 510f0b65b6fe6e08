"""The parameters of an encoder by its config alone: names and shapes, before anything is allocated. Without Paddle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onion.models.pretrained_config import Shape

if TYPE_CHECKING:
    from onion.models.config import EncoderConfig


def shapes_of(config: EncoderConfig) -> dict[str, Shape]:
    """Name -> shape of every parameter of ``Encoder(config)``."""
    width, embedded = config.hidden_size, config.embedding_size
    tables = {
        "word": config.vocab_size,
        "position": config.max_position_embeddings,
        "token_type": config.type_vocab_size,
        "task_type": config.tasks,
    }
    shapes: dict[str, Shape] = {
        f"embeddings.{table}_embeddings.weight": (size, embedded) for table, size in tables.items() if size
    }
    shapes |= norm("embeddings.layer_norm", embedded)
    if embedded != width:
        shapes |= linear("embeddings_project", embedded, width)
    for index in range(config.num_hidden_layers):
        shapes |= _layer(f"encoder.layers.{index}", width, config.intermediate_size)
    return shapes | linear("pooler.dense", width, width)


def _layer(name: str, width: int, inner: int) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {}
    for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
        shapes |= linear(f"{name}.self_attn.{part}", width, width)
    shapes |= linear(f"{name}.linear1", width, inner) | linear(f"{name}.linear2", inner, width)
    return shapes | norm(f"{name}.norm1", width) | norm(f"{name}.norm2", width)


def linear(name: str, width_in: int, width_out: int) -> dict[str, Shape]:
    """The parameters of a linear layer."""
    return {f"{name}.weight": (width_in, width_out), f"{name}.bias": (width_out,)}


def norm(name: str, width: int) -> dict[str, Shape]:
    """The parameters of a LayerNorm."""
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}
