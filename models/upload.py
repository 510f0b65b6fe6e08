"""Upload a folder to a repository of the Hugging Face hub. Without Paddle.

``huggingface_hub`` uploads it, with its settings (see downloads/repository.py). All files are one commit: whoever
downloads the repository gets those of before or those of after.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onion.errors import WeightsError
from onion.messages import first_line
from onion.models.downloads.repository import LOGIN, is_repository


def check_name(name: str) -> None:
    """Raise a WeightsError unless a name is ``OWNER/NAME`` or ``OWNER/NAME@BRANCH``."""
    if not is_repository(name):
        raise WeightsError(f"{name or repr(name)}: a repository of Hugging Face's hub is written OWNER/NAME[@BRANCH]")


def check_upload(name: str) -> None:
    """Refuse an upload that cannot begin, before anything is prepared for it.

    Args:
        name: ``OWNER/NAME``, or ``OWNER/NAME@BRANCH``.

    Raises:
        WeightsError: the name has another form, there is no token, or the hub is not to be asked.
    """
    check_name(name)
    from huggingface_hub import constants, get_token

    if constants.HF_HUB_OFFLINE:
        raise _error(name, "cannot be uploaded to: HF_HUB_OFFLINE is set; unset it")
    if get_token() is None:
        raise _error(name, f"cannot be uploaded to without a token that may write; {LOGIN}")


def upload_folder(folder: Path, name: str, message: str, private: bool = False) -> str:
    """Upload the files of a folder as one commit; create the repository, or its branch, if it does not exist.

    Files of the repository that the folder does not have stay.

    Args:
        folder: with files, not folders.
        name: as :func:`check_upload` takes it.
        message: of the commit.
        private: whether a repository that is created is private.

    Returns:
        The address of the repository, for people.

    Raises:
        WeightsError: the hub refuses it, or cannot be reached; the message says what to do.
    """
    check_upload(name)
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.errors import HfHubHTTPError

    hub, (repository, _, branch) = HfApi(), name.partition("@")
    files = [CommitOperationAdd(path.name, path) for path in sorted(folder.iterdir())]
    try:
        with _progress_on_terminals_only():
            address = hub.create_repo(repository, private=private, exist_ok=True)
            if branch:
                hub.create_branch(repository, branch=branch, exist_ok=True)
            hub.create_commit(repository, files, commit_message=message, revision=branch or None)
    # The first base is the error of the HTTP library: see downloads/repository.py.
    except (*HfHubHTTPError.__bases__, OSError, ValueError, RuntimeError) as error:  # type: ignore[misc]
        raise _error(name, _reason(repository, error)) from error
    return str(address)


@contextmanager
def _progress_on_terminals_only() -> Iterator[None]:
    from huggingface_hub.utils import (  # type: ignore[attr-defined]
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    if are_progress_bars_disabled() or sys.stderr.isatty():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _error(name: str, reason: str) -> WeightsError:
    from huggingface_hub import constants

    return WeightsError(f"{constants.ENDPOINT}/{name} {reason}")


def _reason(repository: str, error: Exception) -> str:
    """Return what was wrong and what to do, in one line."""
    from huggingface_hub import errors

    if isinstance(error, RuntimeError) and isinstance(error.__cause__, Exception):
        return _reason(repository, error.__cause__)  # what was wrong with a large file
    status = error.response.status_code if isinstance(error, errors.HfHubHTTPError) else None
    owner = repository.partition("/")[0]
    if status == 401:
        return f"cannot be uploaded to (HTTP 401): the token is invalid; {LOGIN} with another one"
    if status in (403, 404):
        return f"cannot be uploaded to (HTTP {status}): the token may not write there; is {owner} you or yours? {LOGIN}"
    if status in (409, 412):
        return f"was changed by someone else meanwhile (HTTP {status}); push again"
    if status is not None:
        return f"cannot be uploaded to (HTTP {status}): {_told(error)}; try again later"
    if isinstance(error, ValueError):  # of the library: the hub does not accept the front matter of README.md
        return f"was refused: {' '.join(str(error).split())}"
    return f"cannot be reached ({first_line(error)}); try again later, or keep the files with --output DIR"


def _told(error: Exception) -> str:
    return getattr(error, "server_message", None) or first_line(error)
