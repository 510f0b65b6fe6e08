"""The job behind ``onion push``: a run's best model, uploaded to the Hugging Face hub."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from onion.checkpointing.new_folder import check_new, new_folder
from onion.models.upload import check_name, check_upload, upload_folder
from onion.tasks.publishing.model_folder import write_model


def push(run: str | Path, name: str, *, message: str | None = None, private: bool = False, **settings: Any) -> str:
    """Upload the best checkpoint of a run, with its settings and a model card; return the address of the repository.

        push("run", "ada/films", license="apache-2.0", languages=("en",))
        Predictor.load("ada/films")

    The token is that of ``huggingface_hub``: ``HF_TOKEN``, or ``hf auth login``. The run stays as it is.

    Args:
        run: folder of ``onion train``.
        name: ``OWNER/NAME``, or ``OWNER/NAME@BRANCH``; repository and branch are created if they do not exist. All
            files are one commit; other files of the repository stay.
        message: of the commit. Default: ``Push a model for TASK``.
        private: whether a repository that is created is private.
        settings: ``task_name``, ``license`` and ``languages``, as
            :func:`onion.tasks.publishing.model_folder.write_model` takes them.

    Raises:
        CheckpointError: the folder has no run, or no complete checkpoint.
        DataError: there is no such task in the run.
        WeightsError: the hub refuses the model, or cannot be reached; the message says what to do.
    """
    check_upload(name)
    with tempfile.TemporaryDirectory(prefix="onion-push-") as work:
        task = write_model(Path(run), Path(work), name, **settings)
        return upload_folder(Path(work), name, message or f"Push a model for {task.name}", private)


def write(run: str | Path, output: str | Path, name: str, **settings: Any) -> Path:
    """Write the files that :func:`push` uploads to a new folder, and return it.

    Args:
        run: as :func:`push` takes it.
        output: a new or empty folder; it has all files, or does not exist after an error.
        name: as :func:`push` takes it.
        settings: as :func:`push` takes them.

    Raises:
        OnionError: as :func:`push`; or the folder exists.
    """
    check_name(name)
    output = Path(output)
    check_new(output)
    with new_folder(output) as folder:
        write_model(Path(run), folder, name, **settings)
    return output
