"""The initial weights of a training: a pretrained encoder, or the weights of another training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
from paddle import nn

from onion.checkpointing import checkpoint
from onion.checkpointing.run_state import best_checkpoint
from onion.errors import CheckpointError
from onion.items.gradient_machine import load_network
from onion.models import hub
from onion.models.auto import encoder_class, new_encoder
from onion.models.families import read_config
from onion.models.pretrained_config import PretrainedConfig
from onion.models.tokenizer import Tokenizer
from onion.models.weights import read_weights
from onion.tasks.data.labels import apart
from onion.tasks.finetune.run_folder import FITTED, RUN_FILE, read_record
from onion.tasks.finetune.settings import Settings
from onion.tasks.task import Task

NETWORK = "gradient_machine"


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
    def of(cls, settings: Settings) -> Initialization:
        """Find the source.

        Raises:
            WeightsError: the encoder is neither a folder nor a known name.
            CheckpointError: ``init_from`` is not a folder of ``onion train`` or of one of its checkpoints.
        """
        if settings.init_from is None:
            return cls(hub.resolve(settings.encoder))
        return cls(*_learned(Path(settings.init_from)), settings.init_head)

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
            config, weights = self.config(), read_weights(self.folder)
            network = task.network(encoder_class(config).of(config, weights))
            task.fill(network, weights)
            return network
        if self.head:
            self._check_head(task)
        network = task.network(new_encoder(self.config()))
        taken = self.learned if self.head else {**network.state_dict(), **_of_encoder(self.learned)}
        try:
            load_network(network, taken)
        except CheckpointError as error:
            raise CheckpointError(f"{self.folder}: {error}") from None
        return network

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
        return folder, network_in(best_checkpoint(folder), folder)
    if (folder.parent / RUN_FILE).is_file() and folder.is_dir():
        return folder.parent, network_in(checkpoint.read(folder), folder)
    raise CheckpointError(f"{folder}: neither a folder of onion train nor a checkpoint in one (step-...).")


def _of_encoder(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name: array for name, array in arrays.items() if name.startswith("encoder.")}


def network_in(saved: checkpoint.Checkpoint, folder: Path) -> Mapping[str, Any]:
    """Return the network's parameters in a checkpoint.

    Raises:
        CheckpointError: there are none.
    """
    if NETWORK not in saved.items:
        raise CheckpointError(
            f"{folder}: the run has saved no {NETWORK} (step {saved.step}); was another onion run there?"
        )
    return saved.items[NETWORK]
