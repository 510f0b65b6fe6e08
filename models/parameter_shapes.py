"""The parameters of an encoder by its config alone: names and shapes, before anything is allocated. Without Paddle."""

from __future__ import annotations

from onion.models.config import EncoderConfig

Shape = tuple[int, ...]


def shapes_of(config: EncoderConfig) -> dict[str, Shape]:
    """Name -> shape of every parameter of ``Encoder(config)``."""
    width = config.hidden_size
    tables = {
        "word": config.vocab_size,
        "position": config.max_position_embeddings,
        "token_type": config.type_vocab_size,
        "task_type": config.tasks,
    }
    shapes: dict[str, Shape] = {
        f"embeddings.{table}_embeddings.weight": (size, width) for table, size in tables.items() if size
    }
    shapes |= _norm("embeddings.layer_norm", width)
    for index in range(config.num_hidden_layers):
        shapes |= _layer(f"encoder.layers.{index}", width, config.intermediate_size)
    return shapes | _linear("pooler.dense", width, width)


def _layer(name: str, width: int, inner: int) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {}
    for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
        shapes |= _linear(f"{name}.self_attn.{part}", width, width)
    shapes |= _linear(f"{name}.linear1", width, inner) | _linear(f"{name}.linear2", inner, width)
    return shapes | _norm(f"{name}.norm1", width) | _norm(f"{name}.norm2", width)


def _linear(name: str, width_in: int, width_out: int) -> dict[str, Shape]:
    return {f"{name}.weight": (width_in, width_out), f"{name}.bias": (width_out,)}


def _norm(name: str, width: int) -> dict[str, Shape]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}
