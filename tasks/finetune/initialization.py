"""The initial weights of a training: a pretrained encoder, or the weights of another training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
from paddle import nn

from onion.checkpointing import checkpoint
from onion.errors import CheckpointError
from onion.items.gradient_machine import load_network
from onion.models import hub
from onion.models.auto import encoder_class, new_encoder
from onion.models.families import read_config
from onion.models.pretrained_config import PretrainedConfig
from onion.models.tokenizer import Tokenizer
from onion.models.weights import read_weights
from onion.tasks.data.labels import apart
from onion.tasks.finetune.learned_weights import best_weights, weights_in
from onion.tasks.finetune.run_files import RUN_FILE
from onion.tasks.finetune.run_folder import FITTED, find_run, read_record
from onion.tasks.finetune.settings import Settings, TrainingSettings
from onion.tasks.networks.paths import ENCODER
from onion.tasks.task import Task


@attrs.frozen
class Initialization:
    """The source of initial weights.

    Attributes:
        folder: has config and tokenizer, and the encoder's weights unless ``learned`` is given.
        learned: parameters of a task's network by path.
        head: whether to load those of the head, too.
    """

    folder: Path
    learned: Mapping[str, Any] | None = None
    head: bool = False

    @classmethod
    def of(cls, settings: TrainingSettings) -> Initialization:
        """Find the source.

        Raises:
            WeightsError: the encoder is neither a folder nor a known name, or a run on the hub cannot be downloaded.
            CheckpointError: ``init_from`` is not a folder of ``onion train`` or of one of its checkpoints.
        """
        if settings.init_from is None:
            return cls(hub.resolve(settings.encoder))
        return cls(*_learned(find_run(settings.init_from)), isinstance(settings, Settings) and settings.init_head)

    def config(self) -> PretrainedConfig:
        """Return the encoder's config."""
        return read_config(self.folder)

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        return Tokenizer.from_pretrained(self.folder)

    def network(self, task: Task) -> nn.Layer:
        """Return the task's network with its initial weights.

        Raises:
            WeightsError: the weights of the encoder or of a pretrained head do not fit the config.
            CheckpointError: learned parameters do not fit the network; the message names them.
        """
        if self.learned is None:
            return self.networks({task.name: task})[1][task.name]
        if self.head:
            self._check_head(task)
        network = task.network(new_encoder(self.config()))
        taken = self.learned if self.head else {**network.state_dict(), **_of_encoder(self.learned)}
        try:
            load_network(network, taken)
        except CheckpointError as error:
            raise CheckpointError(f"{self.folder}: {error}") from None
        return network

    def networks(self, tasks: Mapping[str, Task]) -> tuple[nn.Layer, dict[str, nn.Layer]]:
        """Return an encoder with the weights it begins with, and a network over it for each task.

        Raises:
            WeightsError: those of the encoder, or of a head beside it, do not fit its config.
            CheckpointError: those that were learned do not fit the encoder; the message names the parameters.
        """
        config = self.config()
        if self.learned is not None:
            encoder = new_encoder(config)
            of_encoder = {name.removeprefix(ENCODER): array for name, array in _of_encoder(self.learned).items()}
            try:
                load_network(encoder, of_encoder)
            except CheckpointError as error:
                raise CheckpointError(f"{self.folder}: {error}") from None
            return encoder, {name: task.network(encoder) for name, task in tasks.items()}
        weights = read_weights(self.folder)
        encoder = encoder_class(config).of(config, weights)
        networks = {name: task.network(encoder) for name, task in tasks.items()}
        for name, task in tasks.items():
            task.fill(networks[name], weights)
        return encoder, networks

    def _check_head(self, task: Task) -> None:
        """Refuse a head that was trained for another task or other labels, whatever its shape."""
        there, here = read_record(self.folder).get(FITTED, {}), task.record()
        for name in ("task", "labels"):
            if there.get(name) != here.get(name):
                differs = apart(there.get(name), here.get(name))
                raise CheckpointError(
                    f"{self.folder}: its head belongs to another training ({name} {differs}); "
                    "leave out init_head, or give the labels in that order"
                )


def _learned(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """Return the folder of a run, and the network in the given checkpoint or, by default, in the best one."""
    if (folder / RUN_FILE).is_file():
        return folder, best_weights(folder)
    if (folder.parent / RUN_FILE).is_file() and folder.is_dir():
        return folder.parent, weights_in(checkpoint.read(folder), folder.parent)
    raise CheckpointError(f"{folder}: neither a folder of onion train nor a checkpoint in one (step-...).")


def _of_encoder(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name: array for name, array in arrays.items() if name.startswith(ENCODER)}
