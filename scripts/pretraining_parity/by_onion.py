"""onion's side: a Runner with the network and the data of its pretraining tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onion import DataProvider, GradientMachine, Observer, ParameterUpdater, Runner
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.pretraining_heads import WordPrediction
from onion.schedules import palm_linear
from onion.tasks.finetune.clipping import ClipGradByGlobalNorm
from onion.tasks.finetune.optimization import is_decayed
from onion.tasks.pretraining.examples import Example
from onion.tasks.pretraining.masking.ernie import ErnieMasker
from onion.tasks.pretraining.networks import PretrainingNetwork
from scripts.pretraining_parity.material import Recipe, vocabulary


def network_of(config: EncoderConfig) -> PretrainingNetwork:
    """Return ERNIE 1.0 with its two heads."""
    return PretrainingNetwork(Encoder(config), WordPrediction(config), classes=2)


def arrays_of(network: PretrainingNetwork) -> dict[str, np.ndarray]:
    return {name: parameter.numpy() for name, parameter in network.named_parameters()}


def costs(network: PretrainingNetwork, examples: Sequence[Example], recipe: Recipe) -> list[float]:
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
    words = vocabulary(network.encoder.config.vocab_size)
    Runner(
        DataProvider(examples, recipe.batch_size, collate=list),
        ErnieMasker(words, recipe.mask_seed),
        watch,
        ParameterUpdater(optimizer),
        GradientMachine(network),
    ).run(passes=1)
    return found
