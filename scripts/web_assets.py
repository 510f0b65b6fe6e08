"""Download the page's chart library, uPlot (MIT), from npm into onion/online/http/page/vendor/.

    python -m scripts.web_assets        ``make web-assets`` runs it

Only the script, its style sheet and its licence are taken. The package's sha512 is pinned, as npm writes it in
``dist.integrity``, and each file's sha256, so that nothing is downloaded if they exist. Without these files the page
works except for its curves.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

VENDOR = Path(__file__).parents[1] / "onion" / "online" / "http" / "page" / "vendor"
PACKAGE = "uplot@1.6.32"
INTEGRITY = "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw=="
FILES = {
    "package/dist/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "package/dist/uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "package/LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
"""Of each file in the package that is taken: its sha256."""


def main() -> None:
    if complete(VENDOR):
        print(f"{VENDOR}: {PACKAGE} is there")
        return
    with tempfile.TemporaryDirectory() as folder:
        unpack(checked(packed(Path(folder))), VENDOR)
    print(f"{VENDOR}: {', '.join(Path(name).name for name in FILES)} of {PACKAGE}, sha512 as pinned")


def complete(vendor: Path, files: Mapping[str, str] = FILES) -> bool:
    places = {vendor / Path(name).name: digest for name, digest in files.items()}
    return all(
        path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest for path, digest in places.items()
    )


def packed(folder: Path, package: str = PACKAGE) -> Path:
    """Let npm fetch a package through the registry it is configured for; return the archive.

    Raises:
        SystemExit: npm is not there, or it failed.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is not on PATH; install Node.js, or use the page without its curves")
    done = subprocess.run(
        [npm, "pack", package, "--silent", "--ignore-scripts"], cwd=folder, capture_output=True, text=True, check=False
    )
    archives = list(folder.glob("*.tgz"))
    if done.returncode or len(archives) != 1:
        raise SystemExit(f"npm pack {package} failed (exit status {done.returncode}):\n{done.stderr.strip()}")
    return archives[0]


def checked(archive: Path, integrity: str = INTEGRITY) -> Path:
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


def unpack(archive: Path, vendor: Path, files: Mapping[str, str] = FILES) -> None:
    vendor.mkdir(exist_ok=True)
    with tarfile.open(archive) as package:
        for name in files:
            content = package.extractfile(name)
            assert content is not None, f"{name} is no file"  # the archive is pinned: it is one
            (vendor / Path(name).name).write_bytes(content.read())


if __name__ == "__main__":
    main()
