"""How far a network of ours is from what a reference computed: outputs, and the gradient of every parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import paddle

from comparison.table import worst
from onion.models.encoder import Encoder

OF_ENCODER = ("sequence_output", "pooled_output")
OF_HEADS = ("words", "next_sentence")


def differences(network: Any, expected: Mapping[str, np.ndarray]) -> tuple[float, float]:
    """The largest differences to what a reference computed: of the outputs, and of the gradients.

    What only one of the two has makes the difference infinite; of an encoder without heads only its own two outputs are
    asked for.

    Args:
        network: ours, an encoder with heads or without; its gradients are overwritten.
        expected: batch, outputs, ``factor:OUTPUT`` and ``gradient:PARAMETER``, under our names.
    """
    network.clear_gradients()
    outputs = _outputs(network, expected)
    asked = OF_ENCODER if isinstance(network, Encoder) else OF_ENCODER + OF_HEADS
    wanted = {name: expected[name] for name in asked if name in expected}
    if "sequence_output" in wanted:  # ours is zero where there is padding
        wanted["sequence_output"] = wanted["sequence_output"] * expected["attention_mask"][:, :, None]
    arrays = {name: out.numpy() for name, out in outputs.items()}
    of_outputs = worst(difference(arrays.get(name), wanted.get(name)) for name in arrays | wanted)

    common = outputs.keys() & wanted.keys()
    sum((outputs[name] * paddle.to_tensor(expected[f"factor:{name}"])).sum() for name in sorted(common)).backward()
    found = gradients(network)
    theirs = {key.removeprefix("gradient:"): array for key, array in expected.items() if key.startswith("gradient:")}
    return of_outputs, worst(relative(found.get(name), theirs.get(name)) for name in found | theirs)


def difference(found: np.ndarray | None, expected: np.ndarray | None) -> float:
    """The largest difference of two arrays; infinite where one is missing or they differ in shape."""
    if found is None or expected is None or found.shape != expected.shape:
        return float("inf")
    return float(np.abs(found - expected).max())


def relative(found: np.ndarray | None, expected: np.ndarray | None) -> float:
    """The same, relative to the largest expected element where that exceeds 1."""
    scale = 1.0 if expected is None else max(float(np.abs(expected).max()), 1.0)
    return difference(found, expected) / scale


def gradients(network: Any) -> dict[str, np.ndarray]:
    """By name, without the model's name before the encoder's; what took no part in the loss is missing."""
    config = (network if isinstance(network, Encoder) else network.encoder).config
    return {
        name.removeprefix(f"{config.model_type}."): parameter.grad.numpy()
        for name, parameter in network.named_parameters()
        if parameter.grad is not None
    }


def _outputs(network: Any, batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
    ids = [batch["input_ids"], batch["token_type_ids"], None, batch["attention_mask"], batch.get("task_type_ids")]
    if isinstance(network, Encoder):
        return dict(zip(OF_ENCODER, network(*ids), strict=True))
    scores = network(*ids, masked_positions=batch["masked_positions"])
    found = dict(zip((*OF_ENCODER, *OF_HEADS), (*scores.encoded, scores.words, scores.next_sentence), strict=True))
    return {name: out for name, out in found.items() if out is not None}
