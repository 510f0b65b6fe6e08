"""transformers' ELECTRA and XLNet in small, as classifiers: the families that have no head of masked words here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from scripts.reference_outputs.architectures import _MASK, _SIZES, Case, from_hugging_face

MAKER = f"transformers {transformers.__version__}"
CLASSES = {
    "electra": (transformers.ElectraConfig, transformers.ElectraForSequenceClassification),
    "xlnet": (transformers.XLNetConfig, transformers.XLNetForSequenceClassification),
}
XLNET = {
    "vocab_size": 24,
    "d_model": 8,
    "n_layer": 2,
    "n_head": 2,
    "d_inner": 12,
    "dropout": 0.0,
    "pad_token_id": 0,
    "type_vocab_size": 3,  # segments of the batch; XLNet has no table of them
}


def _cases() -> dict[str, Case]:
    mask = np.array(_MASK)
    electra = _SIZES | {"type_vocab_size": 2}
    clamped = {"clamp_len": 2, "ff_activation": "relu"}
    return {
        "electra": Case("electra", "electra", electra | {"embedding_size": 6}, mask),
        "electra_equal": Case("electra_equal", "electra", electra | {"embedding_size": 8}, mask, seed=1),
        "xlnet": Case("xlnet", "xlnet", XLNET, mask),
        "xlnet_clamped": Case("xlnet_clamped", "xlnet", XLNET | clamped, mask, seed=1),
    }


CASES = _cases()


def make(case: Case) -> Any:
    """The model with the case's weights."""
    config, network = CLASSES[case.family]
    settings = {name: value for name, value in case.config.items() if case.family != "xlnet" or "type" not in name}
    model = network(config(**settings)).float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            ours = our_name(name)
            weight = case.weight(ours, our_form(ours, parameter).shape)
            parameter.copy_(torch.from_numpy(their_form(ours, weight, tuple(parameter.shape))))
    return model


def run(model: Any, case: Case) -> dict[str, np.ndarray]:
    """Inputs, outputs, the factors of the loss, and the gradient of every parameter under our names."""
    ids = case.batch()
    tensors = {name: torch.from_numpy(array) for name, array in ids.items()}
    model.zero_grad()
    outputs = _electra(model, case, tensors) if case.family == "electra" else _xlnet(model, case, tensors)
    factors = case.factors({name: tuple(out.shape) for name, out in outputs.items()})
    sum((out * torch.from_numpy(factors[name])).sum() for name, out in outputs.items()).backward()
    found = ids | {"maker": np.array(MAKER)} | {name: out.detach().numpy() for name, out in outputs.items()}
    found |= {f"factor:{name}": factor for name, factor in factors.items()}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            ours = our_name(name)
            found[f"gradient:{ours}"] = np.ascontiguousarray(our_form(ours, parameter.grad))
    return found


def save(model: Any, case: Case, layout: str, folder: Path) -> None:
    """Write the model as transformers writes it (``huggingface``), or used to write it (``torch``)."""
    folder.mkdir(parents=True, exist_ok=True)
    if layout == "torch":
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        model.config.to_json_file(folder / "config.json")
    else:
        model.save_pretrained(folder)


def _electra(model: Any, case: Case, ids: dict[str, Any]) -> dict[str, Any]:
    sequence = model.electra(**ids).last_hidden_state
    first = sequence[range(len(case.first)), case.first]
    pooled = torch.nn.functional.gelu(model.classifier.dense(first))
    return {"sequence_output": sequence, "pooled_output": pooled}


def _xlnet(model: Any, case: Case, ids: dict[str, Any]) -> dict[str, Any]:
    """The summary takes the last column whatever stands there; it is handed the last token here, as ours is."""
    sequence = model.transformer(**ids).last_hidden_state
    last = case.mask.shape[1] - 1 - case.mask[:, ::-1].argmax(axis=1)
    pooled = model.sequence_summary(sequence[range(len(last)), last][:, None])
    return {"sequence_output": sequence, "pooled_output": pooled}


def our_name(name: str) -> str:
    """Our name of a parameter; that of the classifier's output stays, and is no part of the encoder."""
    name = re.sub(r"^(electra|transformer)\.", "", name)
    name = re.sub(r"^(classifier\.dense|sequence_summary\.summary)\.", "pooler.dense.", name)
    return from_hugging_face(name)


def our_form(name: str, parameter: Any) -> np.ndarray:
    """Linear weights as [in, out], the matrices of XLNet's attention with their heads side by side."""
    array = parameter.detach().numpy()
    if re.search(r"rel_attn\.[qkvor]$", name):
        return array.reshape(len(array), -1)
    return array.T if _is_linear(name, array.shape) else array


def their_form(name: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The reverse of :func:`our_form`."""
    return np.ascontiguousarray(array.T if _is_linear(name, shape) else array.reshape(shape))


def _is_linear(name: str, shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and "_embedding" not in name and "rel_attn" not in name
