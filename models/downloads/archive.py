"""Unpack a ``.tar.gz`` without trusting it. Without Paddle.

The filters of ``tarfile`` are missing in some versions of Python 3.10 and 3.11, and allow links.
"""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from onion.errors import WeightsError

MAX_FILES = 10_000  # a static ERNIE has one for each of its 400 variables
MAX_BYTES = 16 << 30  # unpacked, headers included
CHUNK_BYTES = 1 << 20


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack plain files into ``folder``, which is created; owners, modes and times are ignored.

    Returns:
        The folder of the files: ``folder``, or the single folder in it.

    Raises:
        WeightsError: the archive is damaged, has a member that is neither file nor folder, a path outside ``folder``,
            two members with the same name, or more than ``MAX_FILES`` or ``MAX_BYTES``; or a file cannot be written.
            What has been unpacked stays in ``folder``.
    """
    try:
        folder.mkdir(parents=True)
        with _Unpacked(archive) as content:
            with tarfile.open(fileobj=content, mode="r:") as members:
                _write_members(members, folder, archive)
            while content.read(CHUNK_BYTES):  # up to gzip's checksum at the end
                pass
    except (OSError, EOFError, ValueError, RecursionError, zlib.error, tarfile.TarError) as error:
        # RecursionError: tarfile reads nested headers recursively.
        raise WeightsError(f"{archive}: cannot unpack: {error}") from error
    inside = list(folder.iterdir())
    if not inside:
        raise WeightsError(f"{archive}: contains no files")
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


class _Unpacked(gzip.GzipFile):
    """The unpacked bytes, limited: a few kilobytes may unpack to gigabytes, and a header may claim as many."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= 16 * CHUNK_BYTES:  # only headers are read at once
            raise tarfile.ReadError(f"a header claims {size} bytes")
        if self.tell() > MAX_BYTES:
            raise tarfile.ReadError(f"it unpacks to more than {MAX_BYTES} bytes")
        return super().read(size)


def _write_members(members: tarfile.TarFile, folder: Path, archive: Path) -> None:
    for number, member in enumerate(members):
        if number == MAX_FILES:
            raise WeightsError(f"{archive}: contains more than {MAX_FILES} files")
        path = folder / _safe_path(member, archive)
        if member.isdir():
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        packed = members.extractfile(member)
        assert packed is not None  # never for plain files
        with packed, path.open("xb") as file:
            shutil.copyfileobj(packed, file, CHUNK_BYTES)


def _safe_path(member: tarfile.TarInfo, archive: Path) -> PurePosixPath:
    """Return the member's path below the folder; raise a WeightsError unless it is a plain file or folder there."""
    path = PurePosixPath(member.name)
    plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE) and not member.issparse()
    if not plain:
        raise WeightsError(f"{archive}: {member.name!r} is a link, a device or the like")
    # A backslash or a colon can lead outside on Windows; no file of a model has one.
    if path.is_absolute() or ".." in path.parts or any(sign in member.name for sign in "\\:\0"):
        raise WeightsError(f"{archive}: {member.name!r} leads out of the archive's folder")
    return path
