"""LoRA in a training: adapters as the settings ask for them, and where the frozen encoder is stored.

Checkpoints hold what is trained (``TrainedPart``); the rest is stored once, in the run's folder:

    run/frozen.safetensors     the encoder without adapters and pooler
    run/step-*/                adapters, pooler, head, and their optimizer's state

Whoever reads a run (evaluate, predict, --init-from) merges both into the weights of an ordinary network.
"""

from __future__ import annotations

from pathlib import Path

from paddle import nn

from onion import RunnerItem, State
from onion.checkpointing import checkpoint
from onion.errors import DataError
from onion.items.freeze import matching
from onion.items.gradient_machine import load_network, saved_network
from onion.models.lora import FrozenPart, add_lora
from onion.models.merging import has_adapters
from onion.paths import anchored
from onion.tasks.finetune.frozen_file import read_frozen, write_frozen
from onion.tasks.finetune.run_files import FROZEN
from onion.tasks.finetune.settings import TrainingSettings


def add_adapters(network: nn.Layer, settings: TrainingSettings) -> None:
    """Add the adapters that the settings of a training ask for.

    Raises:
        CompositionError: a setting does not fit the encoder.
        DataError: ``freeze`` would freeze all adapters.
    """
    if settings.lora_rank is None:
        return
    add_lora(network, settings.lora_rank, settings.lora_alpha, settings.lora_dropout, settings.lora_targets)
    frozen = {id(parameter) for pattern in settings.freeze for parameter in matching(network, pattern)}
    adapters = [each for path, each in network.named_parameters() if has_adapters([path])]
    if all(id(adapter) in frozen for adapter in adapters):
        raise DataError("freeze matches all adapters of lora_rank, which freezes the rest of the encoder; set only one")


class FrozenEncoder(RunnerItem):
    """Store the frozen part of a network with adapters in the folder of its training, and take it from there.

    It stands inside the RunFolder, which locks the folder. A resumed run has the parameters that it began with, even if
    the encoder's folder has changed.

    Args:
        output: the folder.
        network: the network of the training.

    Raises:
        CheckpointError: the file cannot be written, is damaged, or belongs to another encoder.
    """

    passive = True
    keep_for_inference = False

    def __init__(self, output: Path, network: nn.Layer) -> None:
        self._folder, self._part = anchored(output), FrozenPart(network)

    def initialize(self, state: State) -> None:
        """Store it if the run begins, else load it."""
        if (self._folder / FROZEN).exists() or checkpoint.steps_in(self._folder):
            load_network(self._part, read_frozen(self._folder))
        else:
            write_frozen(self._folder, {path: each.numpy() for path, each in saved_network(self._part).items()})
