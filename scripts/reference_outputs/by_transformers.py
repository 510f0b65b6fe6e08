"""transformers: BERT, ERNIE and RoBERTa with their pretraining heads; ELECTRA and XLNet as classifiers.

The poolers of ELECTRA and XLNet are part of the heads of classifiers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from scripts.reference_outputs.architectures import Case, from_hugging_face

MAKER = f"transformers {transformers.__version__}"
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
    "electra": (transformers.ElectraConfig, transformers.ElectraForSequenceClassification),
    "xlnet": (transformers.XLNetConfig, transformers.XLNetForSequenceClassification),
}
# The plain formulas rather than a fused attention kernel: they are what every implementation is measured against.
PLAIN = {"attn_implementation": "eager"}
tensor = torch.from_numpy


def layouts(case: Case) -> tuple[str, ...]:
    """The layouts that transformers writes."""
    return ("huggingface", "huggingface-shards", "torch")


def make(case: Case) -> Any:
    """The model with the case's weights."""
    config, network = CLASSES[case.family]
    plain = {} if case.is_classifier else PLAIN
    model = network(config(**case.settings, **plain)).float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            ours = from_hugging_face(name)
            weight = case.weight(ours, _our_form(ours, parameter).shape)
            parameter.copy_(tensor(_their_form(ours, weight, tuple(parameter.shape))))
    return model


def load(folder: Path, case: Case) -> Any:
    """The model from a folder."""
    _, network = CLASSES[case.family]
    return network.from_pretrained(folder, **PLAIN).float().eval()


def gradients(model: Any) -> dict[str, np.ndarray]:
    """The gradients of the parameters with onion's names and forms."""
    return {
        (ours := from_hugging_face(name)): np.ascontiguousarray(_our_form(ours, parameter.grad))
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


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


def outputs(model: Any, case: Case, ids: dict[str, Any]) -> dict[str, Any]:
    """The poolers take the first or last column whatever it contains; here they get the first or last token."""
    encoder = getattr(model, "transformer" if case.family == "xlnet" else case.family)
    sequence = encoder(**ids).last_hidden_state
    rows = range(len(case.mask))
    if case.family == "electra":
        pooled = torch.nn.functional.gelu(model.classifier.dense(sequence[rows, case.first]))
    elif case.family == "xlnet":
        pooled = model.sequence_summary(sequence[rows, case.last][:, None])
    else:
        pooled = encoder.pooler(sequence[rows, case.first][:, None])
    found = {"sequence_output": sequence, "pooled_output": pooled}
    if case.is_classifier:
        return found
    if case.family == "roberta":
        words = model.lm_head(sequence)
    else:
        words, found["next_sentence"] = model.cls(sequence, pooled)
    return found | {"words": words.flatten(0, 1)[tensor(case.masked_positions)]}


def _our_form(name: str, parameter: Any) -> np.ndarray:
    """Linear weights as [in, out], the matrices of XLNet's attention with their heads side by side."""
    array = parameter.detach().numpy()
    if re.search(r"rel_attn\.[qkvor]$", name):
        return array.reshape(len(array), -1)
    return array.T if _is_linear(name, array.shape) else array


def _their_form(name: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.ascontiguousarray(array.T if _is_linear(name, shape) else array.reshape(shape))


def _is_linear(name: str, shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and "_embedding" not in name and "rel_attn" not in name
