"""What an exported folder tells about itself: ``export.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from onion.checkpointing.atomic_files import read_file
from onion.errors import CheckpointError, DataError
from onion.messages import shown
from onion.tasks.data.features.hashing import digest_of_file
from onion.tasks.export.names import FORMATS, HUGGINGFACE, MANIFEST
from onion.tasks.finetune.run_files import write_json

FORMAT_VERSION = 1


@attrs.frozen
class Manifest:
    """The record of an export.

    Attributes:
        format: one of ``onion.tasks.export.names.FORMATS``.
        task: name of the task.
        onion: version of onion that wrote it.
        int8: how activations get 8 bits; None: everything has 32.
        compared: how it differs from the run that it was made of; see ``comparison.Comparison``.
        files: name -> size in bytes and SHA-256 of every other file.
        format_version: of this record.
    """

    format: str
    task: str
    onion: str
    int8: str | None
    compared: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]
    format_version: int = FORMAT_VERSION

    def write(self, folder: Path) -> None:
        """Write the record.

        Raises:
            CheckpointError: writing failed.
        """
        write_json(folder / MANIFEST, attrs.asdict(self))


def is_exported(folder: Path) -> bool:
    """Return whether a folder was written by ``onion export``."""
    return (folder / MANIFEST).is_file()


def refuse_exported(folder: Path, do: str) -> None:
    """Refuse the folder of an export where the original is needed.

    Args:
        folder: that may be one.
        do: what to do with the original, as a sentence that ends in its name, such as ``export the run``.

    Raises:
        DataError: it was written by ``onion export``.
    """
    if is_exported(folder):
        raise DataError(f"{folder} was made by onion export; {do} that it was made of")


def refuse_without_checkpoint(folder: Path) -> None:
    """Refuse the folder of an export that has no weights of Paddle's layout.

    Raises:
        CheckpointError: it was exported as ONNX or as a program of Paddle.
    """
    if is_exported(folder) and read_manifest(folder).format != HUGGINGFACE:
        raise CheckpointError(f"{folder} was made by onion export and has no checkpoint; give the run it was made of")


def sums_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return name -> size and SHA-256 of the files of a folder, except the manifest's."""
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name != MANIFEST)
    return {path.name: {"size": path.stat().st_size, "sha256": digest_of_file(path)} for path in paths}


def read_manifest(folder: Path) -> Manifest:
    """Read the record of an exported folder, and check its files by size and SHA-256.

    Raises:
        CheckpointError: the record or a file is missing or damaged, or of a later version of onion.
    """
    try:
        values = json.loads(read_file(folder / MANIFEST))
        version = values["format_version"]
        if version > FORMAT_VERSION:
            raise CheckpointError(
                f"{folder / MANIFEST} has format version {shown(version)}, of a later onion; this one reads up to "
                f"{FORMAT_VERSION}: update onion, or export again"
            )
        manifest = Manifest(**values)
        files = dict(manifest.files)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        raise CheckpointError(f"{folder / MANIFEST} is missing or damaged; export the model again.") from None
    if manifest.format not in FORMATS:
        raise CheckpointError(f"{folder / MANIFEST}: unknown format {shown(manifest.format)}; export the model again.")
    try:
        _check_files(folder, files)
    except (AttributeError, ValueError, TypeError):  # names and entries of other types
        raise CheckpointError(f"{folder / MANIFEST} is missing or damaged; export the model again.") from None
    return manifest


def _check_files(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    for name, told in files.items():
        path = folder / Path(name).name
        if not path.is_file():
            raise CheckpointError(f"{path} is missing; export the model again.")
        if path.stat().st_size != told.get("size") or digest_of_file(path) != told.get("sha256"):
            raise CheckpointError(f"{path} is not what onion export wrote; export the model again.")
