"""onion's side: a Runner with the network and the data of its pretraining tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from onion import DataProvider, GradientMachine, Observer, ParameterUpdater, Runner
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.pretraining_heads import WordPrediction
from onion.schedules import palm_linear
from onion.tasks.batches import batch_of
from onion.tasks.finetune.clipping import ClipGradByGlobalNorm
from onion.tasks.finetune.optimization import is_decayed
from onion.tasks.pretraining.networks import PretrainingNetwork
from scripts.pretraining_parity.material import Recipe, Step


def network_of(config: EncoderConfig) -> PretrainingNetwork:
    """Return ERNIE 1.0 with its two heads."""
    return PretrainingNetwork(Encoder(config), WordPrediction(config), classes=2)


def arrays_of(network: PretrainingNetwork) -> dict[str, np.ndarray]:
    return {name: parameter.numpy() for name, parameter in network.named_parameters()}


def batch(steps: Sequence[Step]) -> dict[str, Any]:
    """Return the batch of a step, which a DataProvider takes for an example."""
    ((samples, masks),) = steps
    made = batch_of([{"ids": each.ids, "types": each.sentences, "label": each.label} for each in samples])
    return {
        **made,
        "input_ids": masks.ids,
        "masked_positions": masks.positions.tolist(),
        "word_labels": masks.labels,
    }


def costs(network: PretrainingNetwork, steps: Iterable[Step], recipe: Recipe) -> list[float]:
    """Train, and return the cost of each step."""
    import paddle

    decayed = {parameter.name for path, parameter in network.named_parameters() if is_decayed(path)}
    optimizer = paddle.optimizer.AdamW(
        palm_linear(recipe.learning_rate, recipe.decay_steps, warmup_steps=recipe.warmup_steps),
        parameters=network.parameters(),
        weight_decay=recipe.weight_decay,
        apply_decay_param_fun=decayed.__contains__,
        grad_clip=ClipGradByGlobalNorm(recipe.clip),
    )
    found: list[float] = []
    watch = Observer(on_batch_end=lambda state: found.append(float(state.loss)))  # type: ignore[arg-type]
    data = DataProvider(list(steps), batch_size=1, collate=batch)
    Runner(data, watch, ParameterUpdater(optimizer), GradientMachine(network)).run(passes=1)
    return found
