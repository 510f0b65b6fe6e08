"""Download the libraries of the pages from npm: uPlot (MIT) for curves, Swagger UI (Apache-2.0) for the interface.

    python -m scripts.web_assets        ``make web-assets`` runs it

Only scripts, style sheets and licences are taken. Each package's sha512 is pinned, as npm writes it in
``dist.integrity``, and each file's sha256, so that nothing is downloaded if they exist. Without these files the control
page works except for its curves, and a service has no page of its interface.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ONION = Path(__file__).parents[1] / "onion"


@dataclass(frozen=True)
class Package:
    """A package of npm: name and version, its sha512, the files that are taken with their sha256, and where to."""

    name: str
    integrity: str
    files: Mapping[str, str]
    vendor: Path


CHARTS = Package(
    "uplot@1.6.32",
    "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
    {
        "package/dist/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
        "package/dist/uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
        "package/LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    },
    ONION / "online" / "http" / "page" / "vendor",
)
INTERFACE = Package(
    "swagger-ui-dist@5.35.0",
    "sha512-U06rpMtW9V3XPGOBeamTUSr0Z09jMX4IJuANpE/EZbAhw0G8CgwrzU4YmXkn/h0wCDNsXdGarTNNHC3sU8yVUQ==",
    {
        "package/swagger-ui-bundle.js": "e6a898692f2d768e807c3ba4626068a69a2c5dd960dd6c76f3e4d3a3de180af2",
        "package/swagger-ui-bundle.js.LICENSE.txt": "37eb6e7e59aed57b2c1acf076574b818ea07b74265717e0bd67b59e0baf9abbb",
        "package/swagger-ui.css": "5ed08757e53da3e026d6cbecc61fe5d43585c9560b302d534ad56692519a273d",
        "package/LICENSE": "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
        "package/NOTICE": "0d20d1adef18aee3f40dd258172155521ce702ac445cb5f7b7d60ed32dad2fb2",
    },
    ONION / "serving" / "page" / "vendor",
)
PACKAGES = (CHARTS, INTERFACE)


def main() -> None:
    for package in PACKAGES:
        if complete(package.vendor, package.files):
            print(f"{package.vendor}: {package.name} is there")
            continue
        with tempfile.TemporaryDirectory() as folder:
            unpack(checked(packed(Path(folder), package.name), package.integrity), package.vendor, package.files)
        names = ", ".join(Path(name).name for name in package.files)
        print(f"{package.vendor}: {names} of {package.name}, sha512 as pinned")


def complete(vendor: Path, files: Mapping[str, str]) -> bool:
    places = {vendor / Path(name).name: digest for name, digest in files.items()}
    return all(
        path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest for path, digest in places.items()
    )


def packed(folder: Path, package: str) -> Path:
    """Let npm fetch a package through the registry it is configured for; return the archive.

    Raises:
        SystemExit: npm is not there, or it failed.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is not on PATH; install Node.js, or use the pages without these libraries")
    done = subprocess.run(
        [npm, "pack", package, "--silent", "--ignore-scripts"], cwd=folder, capture_output=True, text=True, check=False
    )
    archives = list(folder.glob("*.tgz"))
    if done.returncode or len(archives) != 1:
        raise SystemExit(f"npm pack {package} failed (exit status {done.returncode}):\n{done.stderr.strip()}")
    return archives[0]


def checked(archive: Path, integrity: str) -> Path:
    """Return the archive if its hash is the pinned one.

    Raises:
        SystemExit: it is another one; nothing of it was unpacked.
    """
    found = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != integrity:
        raise SystemExit(
            f"{archive.name} is not what is pinned; nothing was unpacked\n  pinned {integrity}\n  found  {found}"
        )
    return archive


def unpack(archive: Path, vendor: Path, files: Mapping[str, str]) -> None:
    vendor.mkdir(exist_ok=True)
    with tarfile.open(archive) as package:
        for name in files:
            content = package.extractfile(name)
            assert content is not None, f"{name} is no file"  # the archive is pinned: it is one
            (vendor / Path(name).name).write_bytes(content.read())


if __name__ == "__main__":
    main()
