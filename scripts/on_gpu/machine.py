"""What a report says of the machine: versions, the GPU, its driver."""

from __future__ import annotations

import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

LIBRARIES = ("onion-paddle", "numpy", "torch", "transformers")


def described(paddle: ModuleType, root: Path) -> dict[str, str]:
    """Return what there is, by its name; Paddle has a GPU."""
    found = paddle.device.cuda.get_device_properties(0)
    return {
        "GPU": f"{found.name}, {found.total_memory / 2**30:.1f} GiB, compute capability {found.major}.{found.minor}",
        "driver": _said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", cwd=root),
        "Paddle": f"{paddle.__version__}, CUDA {paddle.version.cuda()}, cuDNN {paddle.version.cudnn()}",
        "commit": _said("git", "describe", "--always", "--dirty", cwd=root),
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        **{name: _version(name) for name in LIBRARIES},
    }


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not in this environment"


def _said(program: str, *given: str, cwd: Path) -> str:
    """The first line that a program prints, or why there is none."""
    path = shutil.which(program)
    if path is None:
        return f"unknown: there is no {program}"
    told = subprocess.run([path, *given], cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603
    return (told.stdout or told.stderr).strip().partition("\n")[0] or f"unknown: {program} says nothing"
