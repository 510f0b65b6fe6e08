"""A series of trainings in one folder, each with a folder of its own in it."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from onion import Logger, RunnerItem
from onion.checkpointing.lock import exclusive_lock
from onion.errors import CheckpointError
from onion.paths import anchored
from onion.tasks.finetune.fine_tune import Trained, completed, prepare, returning
from onion.tasks.finetune.multitask_settings import MultiTaskSettings
from onion.tasks.finetune.run_files import RUN_FILE, read_json, write_json
from onion.tasks.finetune.run_folder import differences
from onion.tasks.finetune.settings import Settings


@contextmanager
def claimed(output: Path, name: str, record: Mapping[str, Any], own: Sequence[str] = ()) -> Iterator[None]:
    """Create, lock and claim the folder of a series for as long as it runs; the same series continues in its folder.

    Args:
        output: the folder.
        name: of the file with the record.
        record: what the series is, as JSON values: settings, digests of the data, and what is done with them.
        own: other files that the series writes; found without a record they belong to something else.

    Raises:
        CheckpointError: the folder belongs to another series or to something else, is in use by another process, or
            cannot be written.
    """
    if output.exists() and not output.is_dir():
        raise CheckpointError(f"{output} is a file; choose a folder with --output.")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"cannot write {output}: {error.strerror}.") from None
    with exclusive_lock(output, object()):
        _refuse_other(output, name, record, own)
        write_json(output / name, record)
        yield


def _refuse_other(output: Path, name: str, record: Mapping[str, Any], own: Sequence[str]) -> None:
    if (output / name).exists():
        differing = list(differences(read_json(output, name), json.loads(json.dumps(record))))
        if differing:
            raise CheckpointError(
                f"{output} was begun with something else ({'; '.join(differing)}); choose another folder with --output."
            )
        return
    for foreign in (RUN_FILE, *own):
        if (output / foreign).exists():
            raise CheckpointError(f"{output} holds {foreign} of something else; choose another folder with --output.")


def train_in(
    folder: Path, settings: Settings | MultiTaskSettings, quiet: bool = False, rings: Sequence[RunnerItem] = ()
) -> Trained:
    """Train in a folder, or go on there.

    Args:
        folder: of this training.
        settings: of this training.
        quiet: whether the progress bar is hidden. Default False.
        rings: items to put outside the log, where they see the figures of each test.

    Raises:
        OnionError: a file, the weights or a setting are invalid, or the training failed.
    """
    begun = perf_counter()
    gc.collect()  # the network of the training before this one: items and runners refer to each other
    job = prepare(settings)
    runner = returning(job.onion(anchored(folder)).insert_before(Logger, *rings), quiet)
    return completed(job, runner, begun)
