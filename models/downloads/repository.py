"""Repositories of the Hugging Face hub. Without Paddle.

``huggingface_hub`` downloads them, with its settings: the cache (``HF_HOME``), tokens (``HF_TOKEN``, ``hf auth
login``), mirrors (``HF_ENDPOINT``), offline mode (``HF_HUB_OFFLINE``), proxies. Its import takes half a second, so it
is imported where it is used.

Weights are downloaded last: if they are complete, so are the other files, and an interrupted download is never taken
for a model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onion.errors import WeightsError
from onion.messages import first_line
from onion.models.formats.layouts import INDEX, READERS

# The files of a repository that an encoder and its tokenizer need, besides the weights (READERS).
BESIDE_WEIGHTS = [
    "config.json",
    "merges.txt",
    "spiece.model",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    # Of sentence-transformers: how vectors are made.
    "modules.json",
    "sentence_*_config.json",
    "config_sentence_transformers.json",
    "*_Pooling/config.json",
    # Of a run that `onion push` has uploaded: its record and its task.
    "run.json",
    "task.json",
]
Check = Callable[[Path], None]

LOGIN = "set HF_TOKEN or run `hf auth login`"
"""How to give a token, for messages."""

# Words of letters, digits, _, - and .; the last two neither begin nor end a word, and are not doubled.
_NAME = re.compile(r"(?![^@]*(--|\.\.))\w([\w.-]*\w)?/\w([\w.-]*\w)?(@.+)?", re.ASCII)


def is_repository(name: str) -> bool:
    """Return whether this has the form ``OWNER/NAME`` or ``OWNER/NAME@REVISION``."""
    return _NAME.fullmatch(name) is not None


def fetch_repository(name: str, check: Check = lambda folder: None) -> Path:
    """Return the folder of ``OWNER/NAME[@REVISION]`` in the cache, updated if the hub can be reached.

    Args:
        name: of the repository.
        check: called with the folder before the weights are downloaded; raises an error if they are not worth it.

    Raises:
        WeightsError: it does not exist, may not be read, cannot be reached, or has no weights that onion reads; the
            message says which, and what to do.
    """
    from huggingface_hub.errors import HfHubHTTPError

    try:
        folder = _snapshot(name, check=check)
    # The first base is the error of the HTTP library, which depends on the version: requests, httpx or httpx2.
    except (*HfHubHTTPError.__bases__, OSError, ValueError) as error:  # type: ignore[misc]
        raise _error(name, _reason(name, error)) from error
    if folder is None:
        raise _error(name, f"has no weights that onion reads ({', '.join(READERS)})")
    return folder


def cached_repository(name: str) -> Path | None:
    """Return the folder of a repository in the cache, without asking the hub; None if it is not complete there."""
    try:
        return _snapshot(name, local_files_only=True)
    except (OSError, ValueError):  # fetch_repository reports the reason
        return None


def _snapshot(name: str, local_files_only: bool = False, check: Check = lambda folder: None) -> Path | None:
    """Return the folder with the encoder's files and the first kind of weights that exists; None: there are none."""
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")
    for patterns in ([], *map(_patterns, READERS)):
        folder = Path(
            snapshot_download(
                repository,
                revision=revision or None,
                allow_patterns=[*BESIDE_WEIGHTS, *patterns],
                local_files_only=local_files_only,
                tqdm_class=_progress_bar(),
            )
        )
        if not patterns:
            check(folder)
        elif _has_weights(folder, patterns[0]):
            return folder
    return None


def _progress_bar() -> type:
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class ProgressBar(tqdm):
        """Shown on a terminal only, unlike the library's progress bar."""

        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **{"disable": None, **options})  # type: ignore[no-untyped-call]

    return ProgressBar


def _patterns(file: str) -> list[str]:
    """Return the names of a kind of weights: one file, or an index and shards."""
    stem, _, suffix = file.rpartition(".")
    return [file, file + INDEX, f"{stem}-*-of-*.{suffix}"]


def _has_weights(folder: Path, file: str) -> bool:
    if (folder / file).is_file():
        return True
    try:
        shards = json.loads((folder / (file + INDEX)).read_bytes())["weight_map"].values()
        return all((folder / shard).is_file() for shard in shards)
    except FileNotFoundError:
        return False
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return True  # the reader reports a damaged index


def _error(name: str, reason: str) -> WeightsError:
    from huggingface_hub import constants

    return WeightsError(f"{constants.ENDPOINT}/{name} {reason}")


def _reason(name: str, error: Exception) -> str:
    """Return what was wrong and what to do, in one line."""
    from huggingface_hub import constants, errors

    cause = error.__cause__ or error if isinstance(error, errors.LocalEntryNotFoundError) else error
    status = cause.response.status_code if isinstance(cause, errors.HfHubHTTPError) else None
    absent = f"is not in the cache ({constants.HF_HUB_CACHE}), and there is no folder {name}"
    if isinstance(cause, errors.OfflineModeIsEnabled):
        return f"{absent}; to fetch it, unset HF_HUB_OFFLINE"
    if isinstance(cause, errors.GatedRepoError):
        return f"is gated; accept its terms on that page, then {LOGIN}"
    if isinstance(cause, errors.RepositoryNotFoundError):
        return f"does not exist, nor does a folder {name}; if it is private, {LOGIN} with access to it"
    if isinstance(cause, errors.RevisionNotFoundError):
        return "is not a branch, tag or commit of that repository"
    if status in (401, 403):
        return f"cannot be read (HTTP {status}): the token is invalid or lacks access; {LOGIN} with another one"
    if status is not None:
        return f"cannot be read (HTTP {status}); try again later, or set HF_ENDPOINT to a mirror"
    if isinstance(cause, OSError) and cause.filename is not None:
        return f"cannot be written to {cause.filename}: {cause.strerror}"
    return (
        f"cannot be reached ({first_line(cause)}), {absent}; set HF_ENDPOINT to a mirror, or copy the cache from a "
        f"machine where `onion weights get {name}` works"
    )
