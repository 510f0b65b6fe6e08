"""One virtual environment for each reference, outside the repository: made with pip from whatever index it is set to.

An environment is kept and used again until its list of requirements, or the Python that it was made with, changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[1] / "reference_outputs"
READY = "ready.txt"


def home() -> Path:
    """Where they stand: ``$ONION_PARITY``, or ``onion-parity`` in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ONION_PARITY") or cache / "onion-parity")


def python_of(reference: str) -> Path:
    """The interpreter of a reference's environment, which is made if need be.

    Args:
        reference: there is a ``requirements-REFERENCE.txt``.

    Raises:
        subprocess.CalledProcessError: pip cannot install it; what pip said has been printed.
    """
    requirements = REQUIREMENTS / f"requirements-{reference}.txt"
    folder = home() / reference
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    wanted = f"{sys.version}\n{requirements.read_text(encoding='utf-8')}"
    ready = folder / READY
    if ready.is_file() and ready.read_text(encoding="utf-8") == wanted:
        return python
    print(f"installing {reference} into {folder}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    pip = [str(python), "-m", "pip", "-qq", "--disable-pip-version-check"]  # errors only
    subprocess.run([*pip, "install", "--requirement", str(requirements)], check=True)
    ready.write_text(wanted, encoding="utf-8")
    return python
