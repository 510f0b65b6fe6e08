"""The services beside onion's: what starts them, and what they answer."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from benchmarks.serving.callers import CLASSIFY, PREDICT, Route

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
        route: that it answers.
    """

    environment: str
    command: Sequence[str]
    route: Route = PREDICT


PEERS = {
    "transformers, FastAPI": Peer("serving", [f"{HERE}/transformers_service.py", "MODEL", "PORT"]),
    "transformers, LitServe": Peer("serving", [f"{HERE}/litserve_service.py", "MODEL", "PORT"]),
    "infinity": Peer(
        "infinity",
        ["-c", "from infinity_emb.cli import cli; cli()", "v2", *INFINITY.split()],
        CLASSIFY,
    ),
}
