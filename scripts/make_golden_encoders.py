"""Write tests/models/golden/encoder_*.npz: small random encoders, and what the reference implementations make of them.

Run where the reference is installed (none is a dependency of onion), once for each:

    python scripts/make_golden_encoders.py transformers     # made with torch 2.13.0, transformers 5.23.0
    python scripts/make_golden_encoders.py paddlenlp        # made with paddlepaddle 3.3.1, paddlenlp 2.8.1

float32 on the CPU. A file holds the model's ``config.json`` as the reference saves it, its weights and the gradient of
each under our names and in our layout (linear weights [in, out]), a batch with padding left, right and in the middle
and a row of one token, and the outputs. The gradients are those of the sum of all outputs times ``factor:OUTPUT``.

The references pool column 0 whatever stands there; their poolers are handed the first token here, as ours is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).parent.parent / "tests" / "models" / "golden"
SIZES = {
    "vocab_size": 24,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 12,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
BERT = SIZES | {"type_vocab_size": 2}
ROBERTA = SIZES | {"type_vocab_size": 1, "pad_token_id": 1, "layer_norm_eps": 1e-5}
ERNIE_1 = SIZES | {"type_vocab_size": 2, "hidden_act": "relu"}
ERNIE_3 = SIZES | {"type_vocab_size": 4, "task_type_vocab_size": 3, "use_task_id": True, "task_id": 0}
MASK = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 0, 0]])
FIRST = MASK.argmax(axis=1)  # the column of each row's first token
MASKED = np.array([2, 8, 0, 17, 25])  # in the flattened batch

# Hugging Face's names -> ours, in this order.
RENAMED = [
    (r"^(bert|roberta)\.", ""),
    (r"embeddings\.LayerNorm", "embeddings.layer_norm"),
    (r"encoder\.layer\.", "encoder.layers."),
    (r"attention\.self\.(query|key|value)", lambda found: f"self_attn.{found[1][0]}_proj"),
    (r"attention\.output\.dense", "self_attn.out_proj"),
    (r"attention\.output\.LayerNorm", "norm1"),
    (r"intermediate\.dense", "linear1"),
    (r"output\.dense", "linear2"),
    (r"output\.LayerNorm", "norm2"),
    (r"^cls\.predictions\.transform\.dense", "cls.predictions.transform"),
    (r"^cls\.predictions\.transform\.LayerNorm", "cls.predictions.layer_norm"),
    (r"^cls\.predictions\.bias", "cls.predictions.decoder_bias"),
]


def drawn(name: str, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """A weight large enough to matter; embeddings small, so that the norm's epsilon does."""
    is_scale = re.search(r"(norm\d?|LayerNorm)\.weight$", name) is not None
    width = 0.01 if "_embeddings." in name else 0.2
    return generator.normal(1.0 if is_scale else 0.0, width, shape).astype(np.float32)


def batch(config: dict[str, Any]) -> dict[str, np.ndarray]:
    """Ids of a batch for an encoder of these sizes; padding ids where the mask is 0 and nowhere else."""
    generator = np.random.default_rng(1)
    pad = config.get("pad_token_id", 0)
    found = {
        "input_ids": np.where(MASK, generator.integers(pad + 1, config["vocab_size"], MASK.shape), pad),
        "token_type_ids": generator.integers(0, config["type_vocab_size"], MASK.shape),
        "attention_mask": MASK,
    }
    if config.get("use_task_id"):
        found["task_type_ids"] = generator.integers(0, config["task_type_vocab_size"], MASK.shape)
    return found


def factors(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """What each output is multiplied with in the loss: zero where there is padding."""
    generator = np.random.default_rng(2)
    found = {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    found["sequence_output"] *= MASK[:, :, None].astype(np.float32)
    return found


def save(name: str, config: str, parts: dict[str, dict[str, np.ndarray]], plain: dict[str, np.ndarray]) -> None:
    """Write one file; ``parts`` get their key and a colon before their names."""
    arrays = {f"{part}:{key}": array for part, found in parts.items() for key, array in found.items()}
    path = GOLDEN / f"encoder_{name}.npz"
    np.savez_compressed(path, config=np.array(config), masked_positions=MASKED, **plain, **arrays)
    print(f"{path}: {path.stat().st_size} bytes")


def transformers_names(parameters: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Hugging Face's parameters under our names and in our layout."""
    found = {}
    for name, array in parameters.items():
        is_linear = array.ndim == 2 and "_embeddings." not in name
        for pattern, replacement in RENAMED:
            name = re.sub(pattern, replacement, name)
        found[name] = array.T.copy() if is_linear else array
    return found


def with_transformers() -> None:
    """BERT with its pre-training heads, and RoBERTa."""
    import torch
    import transformers as hf

    def run(name: str, model: Any, config: dict[str, Any], outputs: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        generator = np.random.default_rng(0)
        parameters = dict(model.named_parameters())
        with torch.no_grad():
            for key, parameter in parameters.items():
                parameter.copy_(torch.from_numpy(drawn(key, tuple(parameter.shape), generator)))
        ids = batch(config)
        found = outputs({key: torch.from_numpy(array) for key, array in ids.items()})
        factor = factors({key: tuple(out.shape) for key, out in found.items()})
        sum((out * torch.from_numpy(factor[key])).sum() for key, out in found.items()).backward()
        parts = {
            "weight": transformers_names({key: p.detach().numpy() for key, p in parameters.items()}),
            "gradient": transformers_names({key: p.grad.numpy() for key, p in parameters.items()}),
            "factor": factor,
        }
        save(name, model.config.to_json_string(), parts, ids | {k: out.detach().numpy() for k, out in found.items()})

    # The plain formulas rather than a fused attention kernel: they are what every implementation is measured against.
    bert = hf.BertForPreTraining(hf.BertConfig(**BERT, attn_implementation="eager")).float().eval()
    roberta = hf.RobertaModel(hf.RobertaConfig(**ROBERTA, attn_implementation="eager")).float().eval()

    def bert_outputs(ids: dict[str, Any]) -> dict[str, Any]:
        sequence = bert.bert(**ids).last_hidden_state
        pooled = bert.bert.pooler(sequence[range(len(FIRST)), FIRST][:, None])
        words, next_sentence = bert.cls(sequence, pooled)
        return {
            "sequence_output": sequence,
            "pooled_output": pooled,
            "words": words.flatten(0, 1)[torch.from_numpy(MASKED)],
            "next_sentence": next_sentence,
        }

    def roberta_outputs(ids: dict[str, Any]) -> dict[str, Any]:
        sequence = roberta(**ids).last_hidden_state
        pooled = roberta.pooler(sequence[range(len(FIRST)), FIRST][:, None])
        return {"sequence_output": sequence, "pooled_output": pooled}

    run("bert", bert, BERT, bert_outputs)
    run("roberta", roberta, ROBERTA, roberta_outputs)


def with_paddlenlp() -> None:
    """ERNIE 1.0 (relu, no tasks) and 3.0 (tasks) with their pre-training heads."""
    import paddle
    from paddlenlp.transformers import ErnieConfig, ErnieForPretraining

    for name, config in (("ernie_1", ERNIE_1), ("ernie_3", ERNIE_3)):
        generator = np.random.default_rng(0)
        model = ErnieForPretraining(ErnieConfig(**config))
        model.eval()
        parameters = dict(model.named_parameters())
        for key, parameter in parameters.items():
            parameter.set_value(drawn(key, tuple(parameter.shape), generator))
        ids = batch(config)
        tensors = {key: paddle.to_tensor(array) for key, array in ids.items()}
        sequence, _ = model.ernie(**tensors)
        places = paddle.to_tensor(np.stack([np.arange(len(FIRST)), FIRST], axis=1))
        pooled = model.ernie.pooler(paddle.gather_nd(sequence, places).unsqueeze(1))
        words, next_sentence = model.cls(sequence, pooled, masked_positions=paddle.to_tensor(MASKED))
        found = {"sequence_output": sequence, "pooled_output": pooled, "words": words, "next_sentence": next_sentence}
        factor = factors({key: tuple(out.shape) for key, out in found.items()})
        sum((out * paddle.to_tensor(factor[key])).sum() for key, out in found.items()).backward()
        parts = {
            "weight": {key.removeprefix("ernie."): p.numpy() for key, p in parameters.items()},
            "gradient": {key.removeprefix("ernie."): p.grad.numpy() for key, p in parameters.items()},
            "factor": factor,
        }
        save(name, model.config.to_json_string(), parts, ids | {key: out.numpy() for key, out in found.items()})


if __name__ == "__main__":
    {"transformers": with_transformers, "paddlenlp": with_paddlenlp}[sys.argv[1]]()
