"""``make clients``: clients of other services, unchanged, at ``onion serve`` with a tiny model of each kind.

    python -m scripts.clients

openai, huggingface_hub and tritonclient are in an environment of their own, outside the repository, which pip makes if
need be; curl is the system's. Each line tells what a client was answered; a client that fails fails it all.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from onion.tasks.export.export import export
from onion.tasks.export.export_encoder import export_encoder
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.settings import Settings
from scripts.parity.environments import python_of
from tests.onions.material import OPTIONS, encoder, files

TASKS = {
    "classifier": "classification",
    "pairs": "matching",
    "tags": "token-classification",
    "masks": "masked-lm",
    "reader": "question-answering",
}
LENGTH = 16
PASSES = {"token-classification": 30}
"""So that it finds spans; the answers of the others need not be good."""


def main() -> int:
    """Write the models, serve them, and let the clients call."""
    python = python_of("clients")
    with TemporaryDirectory() as room:
        models = [f"{name}={_model(Path(room), name, task)}" for name, task in TASKS.items()]
        vectors = Path(room) / "vectors"
        export_encoder(encoder(), vectors, pooling="mean", normalize=True, max_length=LENGTH)
        command = [sys.executable, "-m", "onion", "serve", *models, f"vectors={vectors}", "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as service:
            assert service.stdout is not None
            try:
                url = service.stdout.readline().strip()
                return subprocess.run([str(python), str(Path(__file__).with_name("calls.py")), url]).returncode
            finally:
                service.terminate()


def _model(room: Path, name: str, task: str) -> Path:
    """Train a tiny model, and export it."""
    learn, dev = map(str, files(task))
    options: dict[str, Any] = OPTIONS.get(task, {"max_length": LENGTH})
    given: dict[str, Any] = {"passes": PASSES.get(task, 1), "batch_size": 4, "learning_rate": 3e-3, "options": options}
    settings = Settings(task=task, encoder=str(encoder()), train=learn, dev=dev, **given)
    with redirect_stdout(StringIO()):  # the drawing of the onion
        train(settings, room / f"{name}.run", quiet=True)
    export(room / f"{name}.run", room / name)
    return room / name


if __name__ == "__main__":
    sys.exit(main())
