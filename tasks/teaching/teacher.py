"""The teacher of a training: a run of one task, which Paddle computes."""

from __future__ import annotations

from pathlib import Path

from onion.errors import DataError
from onion.host import launch
from onion.models.encoder import Encoder
from onion.tasks.export.manifest import refuse_without_checkpoint
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.run_folder import find_run, read_record


def load_teacher(name_or_folder: str, flag: str) -> tuple[Predictor, Path]:
    """Load the run that a training learns from; return its folder too.

    Args:
        name_or_folder: of a run of ``onion train``, or a model from ``onion push``.
        flag: that gives it, for messages.

    Raises:
        CheckpointError: the folder has no run, or no complete checkpoint, or was exported for another engine.
        DataError: it holds several tasks; or several processes were launched.
    """
    if launch.world_size() > 1:
        raise DataError("a training by a teacher runs in one process; start it without a launcher")
    folder = find_run(name_or_folder)
    refuse_without_checkpoint(folder)
    if "tasks" in read_record(folder):
        raise DataError(f"{flag}: {folder} holds several tasks; give a run of one task")
    return Predictor.load(folder, engine="paddle"), folder


def encoder_of_layers(teacher: Predictor, folder: Path, flag: str) -> Encoder:
    """Return a teacher's encoder, whose layers can be taken one by one.

    Raises:
        DataError: it is of another family, such as XLNet, or a student without layers.
    """
    encoder = getattr(teacher.network, "encoder", None)
    if not isinstance(encoder, Encoder):
        raise DataError(
            f"{flag}: {folder} has a {type(encoder or teacher.network).__name__}, of which no layers can be taken; "
            "give a run over BERT, RoBERTa, ERNIE or ELECTRA"
        )
    return encoder
