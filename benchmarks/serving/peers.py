"""The services beside onion's: what starts them, and what they answer."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import attrs

from benchmarks.serving.callers import CLASSIFY, PREDICT, Route
from scripts.parity.environments import python_of

HERE = "benchmarks/serving"
INFINITY = (
    "--model-id MODEL --served-model-name model --host 127.0.0.1 --port PORT --engine torch --device cpu "
    "--no-bettertransformer"  # of optimum, which no longer has it
)


@attrs.frozen
class Peer:
    """Another service.

    Attributes:
        environment: its name, which that of ``scripts/reference_outputs/requirements-NAME.txt`` has.
        command: what its interpreter gets; MODEL is the folder, PORT the port.
        libraries: whose versions are told.
        route: that it answers.
    """

    environment: str
    command: Sequence[str]
    libraries: Sequence[str]
    route: Route = PREDICT

    def versions(self) -> dict[str, str]:
        """Return library -> version, as installed in the environment."""
        asked = "import importlib.metadata, sys; print(*map(importlib.metadata.version, sys.argv[1:]), sep='\\n')"
        command = [str(python_of(self.environment)), "-c", asked, *self.libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return dict(zip(self.libraries, done.stdout.split(), strict=True))


PEERS = {
    "transformers, FastAPI": Peer(
        "serving", [f"{HERE}/transformers_service.py", "MODEL", "PORT"], ["torch", "transformers"]
    ),
    "transformers, LitServe": Peer("serving", [f"{HERE}/litserve_service.py", "MODEL", "PORT"], ["litserve"]),
    "infinity": Peer(
        "infinity",
        ["-c", "from infinity_emb.cli import cli; cli()", "v2", *INFINITY.split()],
        ["infinity-emb"],
        CLASSIFY,
    ),
}
