"""The weights of the network that a training has learned, in its best checkpoint or another one. Without Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onion.checkpointing import checkpoint
from onion.checkpointing.run_state import best_checkpoint
from onion.errors import CheckpointError
from onion.tasks.export.manifest import refuse_without_checkpoint
from onion.tasks.finetune.frozen_file import whole
from onion.tasks.finetune.run_files import TASK_FILE, read_json
from onion.tasks.publishing.weights import is_published, read_network
from onion.tasks.registry import recorded_task

NETWORK, AVERAGE = "gradient_machine", "moving_average"
"""Names of items, as checkpoints have them."""


def best_weights(folder: Path) -> Mapping[str, Any]:
    """Return the weights of the network in the best checkpoint of a run, or of a model that ``onion push`` has made.

    Raises:
        CheckpointError: there is no complete checkpoint, the record of the task is damaged, or the folder was exported
            for another engine.
        WeightsError: the weights or the config of the model are damaged.
    """
    if is_published(folder):
        return read_network(folder, recorded_task(read_json(folder, TASK_FILE), folder / TASK_FILE).name)
    refuse_without_checkpoint(folder)  # behind it: it reads all files of an export, which loading has done before
    return weights_in(best_checkpoint(folder), folder)


def weights_in(saved: checkpoint.Checkpoint, folder: Path) -> Mapping[str, Any]:
    """Return the weights of the network in a checkpoint: their moving average, where the training kept one.

    Adapters are merged.

    Args:
        saved: the checkpoint.
        folder: of the run.

    Raises:
        CheckpointError: the checkpoint has no network, or a part of it that the folder should have is missing.
    """
    if AVERAGE in saved.items:
        return whole(saved.items[AVERAGE], folder)
    if NETWORK not in saved.items:
        raise CheckpointError(
            f"{folder}: the run has saved no {NETWORK} (step {saved.step}); was another onion run there?"
        )
    return whole(saved.items[NETWORK], folder)
