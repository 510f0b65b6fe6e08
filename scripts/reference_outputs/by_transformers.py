"""transformers: BERT and ERNIE with their pre-training heads, RoBERTa with its head of masked words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from scripts.reference_outputs.architectures import Case, from_hugging_face

MAKER = f"transformers {transformers.__version__}"
READS = "huggingface"
SHARD = {False: "4KB", True: "100KB"}  # by whether the model is a live one: a few shards


class RobertaForMaskedLM(transformers.RobertaForMaskedLM):
    """With the pooler, which transformers leaves out of this class, and which the published weights hold."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.roberta = transformers.RobertaModel(config)
        self.post_init()


CLASSES = {
    "bert": (transformers.BertConfig, transformers.BertForPreTraining),
    "roberta": (transformers.RobertaConfig, RobertaForMaskedLM),
    "ernie": (transformers.ErnieConfig, transformers.ErnieForPreTraining),
}
# The plain formulas rather than a fused attention kernel: they are what every implementation is measured against.
PLAIN = {"attn_implementation": "eager"}


def layouts(case: Case) -> tuple[str, ...]:
    """The layouts that transformers writes."""
    return ("huggingface", "huggingface-shards", "torch")


def make(case: Case) -> Any:
    """The model with the case's weights."""
    config, network = CLASSES[case.family]
    model = network(config(**case.config, **PLAIN)).float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            ours = from_hugging_face(name)
            shape = tuple(parameter.shape)
            weight = case.weight(ours, shape[::-1]).T if _is_linear(ours, shape) else case.weight(ours, shape)
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(weight)))
    return model


def load(folder: Path, case: Case) -> Any:
    """The model from a folder."""
    _, network = CLASSES[case.family]
    return network.from_pretrained(folder, **PLAIN).float().eval()


def run(model: Any, case: Case) -> dict[str, np.ndarray]:
    """Inputs, outputs, the factors of the loss, and the gradient of every parameter under our names."""
    model.zero_grad()
    ids = case.batch()
    outputs = _outputs(model, case, {name: torch.from_numpy(array) for name, array in ids.items()})
    factors = case.factors({name: tuple(out.shape) for name, out in outputs.items()})
    sum((out * torch.from_numpy(factors[name])).sum() for name, out in outputs.items()).backward()
    found = ids | {"masked_positions": case.masked_positions, "maker": np.array(MAKER)}
    found |= {name: out.detach().numpy() for name, out in outputs.items()}
    found |= {f"factor:{name}": factor for name, factor in factors.items()}
    return found | {f"gradient:{name}": gradient for name, gradient in gradients(model).items()}


def gradients(model: Any) -> dict[str, np.ndarray]:
    """The gradient of each parameter under our name, linear weights as [in, out]."""
    found = {}
    for name, parameter in model.named_parameters():
        name, gradient = from_hugging_face(name), parameter.grad.numpy()
        found[name] = gradient.T.copy() if _is_linear(name, gradient.shape) else gradient
    return found


def save(model: Any, case: Case, layout: str, folder: Path) -> None:
    """Write the model as transformers writes it, or used to write it."""
    folder.mkdir(parents=True, exist_ok=True)
    if layout == "torch":  # until 4.35; the library no longer writes it, torch does
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        model.config.to_json_file(folder / "config.json")
    elif layout == "huggingface-shards":
        model.save_pretrained(folder, max_shard_size=SHARD[case.config["vocab_size"] > 100])
    else:
        model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)


def _outputs(model: Any, case: Case, ids: dict[str, Any]) -> dict[str, Any]:
    """The pooler takes column 0 whatever is there; here it gets the first token, as ours does."""
    encoder = getattr(model, case.family)
    sequence = encoder(**ids).last_hidden_state
    pooled = encoder.pooler(sequence[range(len(case.first)), case.first][:, None])
    found = {"sequence_output": sequence, "pooled_output": pooled}
    if case.family == "roberta":
        words = model.lm_head(sequence)
    else:
        words, found["next_sentence"] = model.cls(sequence, pooled)
    return found | {"words": words.flatten(0, 1)[torch.from_numpy(case.masked_positions)]}


def _is_linear(name: str, shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and "_embeddings." not in name
