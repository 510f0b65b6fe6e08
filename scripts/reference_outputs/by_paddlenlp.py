"""PaddleNLP: ERNIE and BERT with their pre-training heads, RoBERTa with its head of masked words; and static ERNIE."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddlenlp import transformers

from scripts.reference_outputs.architectures import Case, from_paddlenlp, to_static

MAKER = f"PaddleNLP {version('paddlenlp')}"
STATIC_EPS = 1e-5
tensor = paddle.to_tensor


class RobertaForMaskedLM(transformers.RobertaForMaskedLM):
    """With the pooler, which PaddleNLP leaves out of this class, and which the published weights hold."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.roberta = transformers.RobertaModel(config)
        self.tie_weights()


CLASSES = {
    "bert": (transformers.BertConfig, transformers.BertForPretraining),
    "roberta": (transformers.RobertaConfig, RobertaForMaskedLM),
    "ernie": (transformers.ErnieConfig, transformers.ErnieForPretraining),
}


def layouts(case: Case) -> tuple[str, ...]:
    """The layouts that PaddleNLP writes or wrote, and static ERNIE's, which knows one width of the feed-forward."""
    if case.family != "ernie":
        return ("paddlenlp",)
    fourfold = case.config["intermediate_size"] == 4 * case.config["hidden_size"]
    return ("paddlenlp", "paddlenlp-nested", *(("static",) if fourfold else ()))


def make(case: Case) -> Any:
    """The model with the case's weights."""
    config, network = CLASSES[case.family]
    model = network(config(**case.config))
    model.eval()
    for name, parameter in model.named_parameters():
        parameter.set_value(case.weight(from_paddlenlp(name), tuple(parameter.shape)))
    return model


def load(folder: Path, case: Case) -> Any:
    """The model from a folder."""
    _, network = CLASSES[case.family]
    model = network.from_pretrained(str(folder))
    model.eval()
    return model


def as_static(model: Any) -> Any:
    """The same model with the epsilon of static ERNIE.

    That is Paddle 1.x's default, which PaddleNLP's class overrides with 1e-12 whatever its config says; so it has to be
    put into the layers. Nothing else in what the two compute differs.
    """
    model.clear_gradients()
    for layer in model.sublayers():
        if isinstance(layer, paddle.nn.LayerNorm):
            layer._epsilon = STATIC_EPS
    return model


def gradients(model: Any) -> dict[str, np.ndarray]:
    """The gradient of every parameter with onion's name."""
    return {from_paddlenlp(name): parameter.grad.numpy() for name, parameter in model.named_parameters()}


def save(model: Any, case: Case, layout: str, folder: Path) -> None:
    """Write the model as PaddleNLP writes it, as it wrote it until 2.4.2, or as static ERNIE's."""
    folder.mkdir(parents=True, exist_ok=True)
    if layout == "paddlenlp":
        model.save_pretrained(str(folder))
    elif layout == "paddlenlp-nested":
        _save_nested(model, case, folder)
    else:
        _save_static(model, case, folder)


def _save_nested(model: Any, case: Case, folder: Path) -> None:
    """Written here, for 2.8.1 writes this form no longer: the encoder's keywords within those of the task's model."""
    inner = {"init_class": "ErnieModel", "pad_token_id": 0, **case.config}
    values = {"init_args": [inner], "init_class": "ErnieForPretraining"}
    (folder / "model_config.json").write_text(json.dumps(values, indent=2) + "\n")
    state = {
        name.replace("predictions.decoder.weight", "predictions.decoder_weight"): tensor
        for name, tensor in model.state_dict().items()
        if name != "cls.predictions.decoder.bias"
    }
    paddle.save(state, str(folder / "model_state.pdparams"))


def _save_static(model: Any, case: Case, folder: Path) -> None:
    """One file a variable, written by Paddle; the config as static ERNIE's, with the keys of 2.0 where it has tasks."""
    values = {key: value for key, value in case.config.items() if key != "intermediate_size"}
    values = {"hidden_act": "gelu", "initializer_range": 0.02} | values
    if values.get("use_task_id"):
        values["sent_type_vocab_size"] = values.pop("type_vocab_size")
    (folder / "ernie_config.json").write_text(json.dumps(values, indent=2) + "\n")
    (folder / "params").mkdir(exist_ok=True)
    for name, parameter in model.named_parameters():
        variable = folder / "params" / to_static(from_paddlenlp(name))
        paddle.save(parameter, str(variable), use_binary_format=True)


def outputs(model: Any, case: Case, ids: dict[str, Any]) -> dict[str, Any]:
    """The pooler takes column 0 whatever is there; here it gets the first token, as ours does."""
    encoder = getattr(model, case.family)
    sequence, _ = encoder(**ids)
    places = paddle.to_tensor(np.stack([np.arange(len(case.first)), case.first], axis=1))
    pooled = encoder.pooler(paddle.gather_nd(sequence, places).unsqueeze(1))
    found = {"sequence_output": sequence, "pooled_output": pooled}
    masked = paddle.to_tensor(case.masked_positions)
    if case.family == "roberta":
        return found | {"words": model.lm_head(sequence).flatten(0, 1)[masked]}
    words, next_sentence = model.cls(sequence, pooled, masked_positions=masked)
    return found | {"words": words, "next_sentence": next_sentence}
