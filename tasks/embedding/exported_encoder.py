"""An exported encoder: texts as one vector each, without Paddle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onion.checkpointing.atomic_files import read_file
from onion.errors import CheckpointError, DataError
from onion.models.families import read_config
from onion.models.pretrained_config import PretrainedConfig
from onion.tasks.embedding.pooling import Pooling
from onion.tasks.export.exported_network import inputs_of, rows_alone
from onion.tasks.export.graph import input_names
from onion.tasks.export.manifest import read_manifest
from onion.tasks.export.names import DYNAMIC, EMBEDDING, ONNX, ONNX_FILE, POOLING_FILE
from onion.tasks.export.sessions import OnnxSession, ProgramSession, Session


class ExportedEncoder:
    """Run an exported encoder on batches of ``onion.tasks.batches.batch_of``.

    Args:
        config: of the encoder.
        session: runs the model, whose first output is a vector for each row.
        exported: how it makes a vector of a text.
        alone: run each row on its own, as ``ExportedNetwork`` does.
    """

    def __init__(self, config: PretrainedConfig, session: Session, exported: Pooling, alone: bool = False) -> None:
        self.config, self.session, self.exported, self.alone = config, session, exported, alone

    @classmethod
    def load(cls, folder: Path, threads: int | None = None) -> ExportedEncoder:
        """Load what ``onion export --encoder`` wrote.

        Raises:
            CheckpointError: the folder is damaged, or has another model.
            OnionError: the engine is not installed.
        """
        manifest = read_manifest(folder)
        if manifest.task != EMBEDDING:
            raise CheckpointError(f"{folder} has a model for the task {manifest.task}, not an encoder.")
        config = read_config(folder / "config.json")
        session: Session
        if manifest.format == ONNX:
            session = OnnxSession(folder / ONNX_FILE, threads)
        else:
            session = ProgramSession(folder, input_names(config))
        return cls(config, session, read_pooling(folder / POOLING_FILE), alone=manifest.int8 == DYNAMIC)

    def check(self, pooling: str | None, layer: int | None, normalize: bool) -> None:
        """Refuse settings that are not those of the export; None and False are whatever they are there.

        Raises:
            DataError: the message has those of the export.
        """
        ours = self.exported
        asked = (pooling or ours.pooling, layer or ours.layer, normalize or ours.normalize)
        if asked != (ours.pooling, ours.layer, ours.normalize):
            raise DataError(
                f"this encoder was exported with pooling {ours.pooling}, layer {ours.layer or 'the last'}, normalize "
                f"{str(ours.normalize).lower()}; leave these settings out, or export it again."
            )

    def __call__(self, batch: Mapping[str, Any]) -> np.ndarray:
        """Return the vectors of a batch, float32 ``[batch, hidden]``."""
        given = inputs_of(batch)
        if not self.alone:
            return self.session(given)
        return np.concatenate([self.session(row) for row in rows_alone(given, batch["lengths"])])


def read_pooling(path: Path) -> Pooling:
    """Read how an exported encoder makes a vector of a text.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    try:
        return Pooling(**json.loads(read_file(path)))
    except (OSError, ValueError, TypeError, RecursionError):
        raise CheckpointError(f"{path} is missing or damaged; export the encoder again.") from None
