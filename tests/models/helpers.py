"""Small configs, encoders, weights, folders and batches for the tests of models/."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import numpy as np
import paddle
import safetensors.numpy

from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder

SMALL = EncoderConfig(
    vocab_size=40,
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=16,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)

# One of each family, and what only some have: see the tests that use them.
VARIANTS = {
    "bert": SMALL,
    "ernie 1.0": attrs.evolve(SMALL, model_type="ernie", hidden_act="relu", layer_norm_eps=1e-5),
    "ernie 2.0, tasks off": attrs.evolve(SMALL, model_type="ernie", type_vocab_size=4, task_type_vocab_size=16),
    "ernie 3.0": attrs.evolve(
        SMALL, model_type="ernie", type_vocab_size=4, task_type_vocab_size=3, use_task_id=True, task_id=1
    ),
    "roberta": attrs.evolve(
        SMALL, model_type="roberta", type_vocab_size=1, pad_token_id=1, position_offset=2, layer_norm_eps=1e-5
    ),
    "roberta without types": attrs.evolve(
        SMALL, model_type="roberta", type_vocab_size=0, pad_token_id=1, position_offset=2, pool_act="linear"
    ),
}

RAGGED = np.arange(9) < np.array([9, 1, 4, 7, 2])[:, None]
MASKS = {
    "right": [[1, 1, 1, 0], [1, 1, 0, 0]],
    "left": [[0, 1, 1, 1], [0, 0, 1, 1]],
    "holes": [[1, 0, 1, 1], [0, 1, 0, 1]],
    "one token": [[1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0]],
    "none": [[1, 1, 1, 1], [1, 1, 1, 1]],
}


def small_encoder(seed: int = 1, config: EncoderConfig = SMALL) -> Encoder:
    """An encoder with random weights that are large enough to matter, biases and norms included."""
    paddle.seed(seed)
    encoder = Encoder(config)
    generator = np.random.default_rng(seed)
    for name, parameter in encoder.named_parameters():
        middle = 1.0 if name.endswith(("norm.weight", "norm1.weight", "norm2.weight")) else 0.0
        parameter.set_value(generator.normal(middle, 0.2, parameter.shape).astype(np.float32))
    encoder.eval()
    return encoder


def arrays_of(network):
    """The parameters of a network."""
    return {name: parameter.numpy() for name, parameter in network.named_parameters()}


def assert_equal_bits(first, second):
    """The same arrays, whatever their order."""
    assert sorted(first) == sorted(second)
    for name in first:
        assert first[name].shape == second[name].shape, name
        assert first[name].dtype == second[name].dtype, name
        assert first[name].tobytes() == second[name].tobytes(), name


def random_batch(config, mask, seed=0):
    """Ids, types, tasks and positions."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(config.pad_token_id + 1, config.vocab_size, mask.shape)
    types = generator.integers(0, max(config.type_vocab_size, 1), mask.shape)
    tasks = generator.integers(0, max(config.tasks, 1), mask.shape)
    positions = np.broadcast_to(np.arange(mask.shape[1]), mask.shape)
    if config.model_type == "roberta":
        # As in transformers: padding has the padding id's position, tokens count on from there.
        positions = np.cumsum(mask, axis=1) * mask + config.pad_token_id
    return ids, types, tasks, positions


def encoded(encoder, mask, seed=0, **more):
    """The output for a random batch."""
    ids, types, tasks, _ = random_batch(encoder.config, mask, seed)
    return encoder(ids, token_type_ids=types, attention_mask=mask, task_type_ids=tasks, **more)


def close(one, other):
    np.testing.assert_allclose(one, other, atol=1e-5, rtol=0)


def gradients(encoder, sequence, pooled, seed=0):
    """Of a loss that every output takes part in, each in its own way."""
    encoder.clear_gradients()
    generator = np.random.default_rng(seed)
    loss = sum(
        (out * paddle.to_tensor(generator.normal(size=out.shape)).astype(out.dtype)).sum() for out in (sequence, pooled)
    )
    loss.backward()
    return {name: parameter.grad.numpy() for name, parameter in encoder.named_parameters()}


HEADS = {
    "cls.predictions.transform.weight": (24, 24),
    "cls.predictions.transform.bias": (24,),
    "cls.predictions.layer_norm.weight": (24,),
    "cls.predictions.layer_norm.bias": (24,),
    "cls.predictions.decoder_weight": (40, 24),
    "cls.predictions.decoder_bias": (40,),
    "cls.seq_relationship.weight": (24, 2),
    "cls.seq_relationship.bias": (2,),
}


def ours(seed=1):
    """A small encoder's weights."""
    return arrays_of(small_encoder(seed))


def our_heads():
    """Pretraining heads for it."""
    generator = np.random.default_rng(3)
    return {name: generator.normal(size=shape).astype(np.float32) for name, shape in HEADS.items()}


HUGGING_FACE_LAYER = {
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "self_attn.out_proj": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "linear1": "intermediate.dense",
    "linear2": "output.dense",
    "norm2": "output.LayerNorm",
}


def hugging_face_arrays(encoder: Encoder, prefix: str = "") -> dict[str, np.ndarray]:
    """The encoder's weights as a Hugging Face BERT stores them."""
    arrays = {}
    for name, parameter in encoder.named_parameters():
        array = parameter.numpy()
        if array.ndim == 2 and "embeddings" not in name:
            array = np.ascontiguousarray(array.T)
        if name.startswith("encoder.layers."):
            _, _, index, *middle, kind = name.split(".")
            name = f"encoder.layer.{index}.{HUGGING_FACE_LAYER['.'.join(middle)]}.{kind}"
        arrays[prefix + name.replace("embeddings.layer_norm", "embeddings.LayerNorm")] = array
    return arrays


def write_folder(folder: Path, arrays: dict[str, np.ndarray], config: EncoderConfig = SMALL, **more) -> Path:
    """A model folder, written without the code under test."""
    folder.mkdir(parents=True, exist_ok=True)
    values = {name: getattr(config, name) for name in SMALL.to_dict()} | more
    (folder / "config.json").write_text(json.dumps(values))
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")
    return folder
