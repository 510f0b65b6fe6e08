"""Unpacking a ``.tar.gz`` that nobody vouches for. Without Paddle."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from onion.checkpointing.atomic_files import sync_folder
from onion.errors import WeightsError

MOST_FILES = 10_000  # a static ERNIE has one for each of some 400 variables
MOST_BYTES = 16 << 30  # unpacked, headers included
BLOCK = 1 << 20
# No read of ours is longer than a block; tarfile's are, when a header claims to be: that one is refused.
LONGEST_READ = 16 * BLOCK


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack files and folders into ``folder``, which is made, and flush them to the disk.

    Nothing that the archive says decides where something is written: names lead below ``folder``, each to a new file.
    Owners, modes and times are passed over.

    Args:
        archive: a tar, packed by gzip.
        folder: does not exist yet; when it fails, what was unpacked so far is removed again.

    Returns:
        The folder of the files: ``folder``, or the one folder in it, where the archive wraps everything in one.

    Raises:
        WeightsError: the archive is damaged, has a member that is neither file nor folder, one whose path is absolute
            or leads out, two of one name, or more than ``MOST_FILES`` or ``MOST_BYTES``; or the disk refused.
    """
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise WeightsError(f"{folder}: cannot make the folder to unpack {archive}: {error.strerror}") from error
    try:
        with gzip.open(archive) as packed:
            content = _Limited(packed, archive)
            with tarfile.open(fileobj=content, mode="r:") as members:  # type: ignore[call-overload]
                _unpack_all(members, folder, archive)
            while content.read(BLOCK):  # up to gzip's checksum, which is read last
                pass
        for place in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
            sync_folder(place)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, (OSError, EOFError, zlib.error, tarfile.TarError, ValueError)):
            raise WeightsError(f"{archive}: cannot unpack it: {error}; nothing was unpacked") from error
        if isinstance(error, RecursionError):  # tarfile reads the header that follows such a header inside of it
            raise WeightsError(f"{archive}: hundreds of headers for one file; nothing was unpacked") from error
        raise
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def _unpack_all(members: tarfile.TarFile, folder: Path, archive: Path) -> None:
    files = 0
    for number, member in enumerate(members):
        if number >= MOST_FILES:
            raise WeightsError(f"{archive}: holds more than {MOST_FILES} files; nothing was unpacked")
        target = folder / _safe(member, archive)
        if member.isdir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        source = members.extractfile(member)
        assert source is not None  # for regular files never
        with source, target.open("xb") as file:
            shutil.copyfileobj(source, file, BLOCK)
            file.flush()
            os.fsync(file.fileno())
        files += 1
    if not files:
        raise WeightsError(f"{archive}: holds no files")


def _safe(member: tarfile.TarInfo, archive: Path) -> PurePosixPath:
    """The member's path below the folder.

    Raises:
        WeightsError: it leads elsewhere, or the member is not a plain file or a folder.
    """
    path = PurePosixPath(member.name)
    plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE) and not member.issparse()
    if not plain:
        raise WeightsError(f"{archive}: {member.name!r} is a link, a device or the like; nothing was unpacked")
    # A backslash or a colon means a way out on Windows; no file of a model has one.
    if path.is_absolute() or ".." in path.parts or any(sign in member.name for sign in "\\:\0"):
        raise WeightsError(f"{archive}: {member.name!r} leads out of the archive's folder; nothing was unpacked")
    return path


class _Limited:
    """The unpacked bytes, as far as they may go: a few kilobytes can be packed zeros by the gigabyte."""

    def __init__(self, packed: gzip.GzipFile, archive: Path) -> None:
        self._packed, self._archive = packed, archive

    def read(self, count: int) -> bytes:
        """Read so many bytes, or what is left."""
        if count > LONGEST_READ:
            raise WeightsError(f"{self._archive}: a header claims {count} bytes; nothing was unpacked")
        content = self._packed.read(count)
        self._check(self._packed.tell())
        return content

    def seek(self, position: int) -> int:
        """Go to a position."""
        self._check(position)
        return self._packed.seek(position)

    def tell(self) -> int:
        """Return the position."""
        return self._packed.tell()

    def _check(self, position: int) -> None:
        if position > MOST_BYTES:
            raise WeightsError(f"{self._archive}: unpacks to more than {MOST_BYTES} bytes; nothing was unpacked")
