"""Runs of Weights & Biases (extra ``[wandb]``)."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from onion.monitoring.records import Histogram, Image, Value
from onion.monitoring.writers.writer import Writer, extra

log = logging.getLogger("onion")


class WandbWriter(Writer):
    """Write a run of Weights & Biases.

    ``WANDB_MODE=offline`` keeps it on the disk, for ``wandb sync``. The settings are the run's config. A resumed run
    goes on in the same run, and writes no step that the server has. Offline, where no server can be asked, each process
    writes a folder with the same id, and after a kill two of them have the points since the checkpoint.

    Args:
        arguments: of ``wandb.init``, such as ``project``, ``dir``, ``name``, ``entity``. Environment variables
            (``WANDB_PROJECT``, ...) go before them.

    Raises:
        OnionError: when the run begins, wandb is not installed, or cannot begin: not logged in, no network.
    """

    name = "wandb"
    remedy = "log in by `wandb login`, or set WANDB_MODE=offline and send the run later by `wandb sync`"

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments

    def open(self, step: int, place: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Begin a run, or go on in one."""
        with extra("wandb", "Weights & Biases"):
            import wandb
        self._client = wandb
        # One line of ours instead of W&B's twenty; and it would take what is printed, the progress bar too.
        quiet = _unless_set({"silent": True, "console": "off"})
        same: dict[str, Any] = {"id": place["id"], "resume": "allow"} if place else {"config": dict(settings)}
        self._run = wandb.init(**same, **_unless_set(self.arguments), settings=wandb.Settings(**quiet))
        log.info("wandb: %s", self._run.dir if self._run.offline else self._run.url)

    def write(self, step: int, values: Mapping[str, Value]) -> None:
        """Write the values of a step, unless the run has it."""
        if step >= self._run.step:
            self._run.log({name: self._as_its_own(value) for name, value in values.items()}, step=step)

    def _as_its_own(self, value: Value) -> Any:
        if isinstance(value, Histogram):
            return self._client.Histogram(np_histogram=(value.counts, value.edges))
        return self._client.Image(value.picture()) if isinstance(value, Image) else value

    def place(self) -> dict[str, Any]:
        """Return the id of the run."""
        return {"id": self._run.id}

    def close(self, failed: bool) -> None:
        """Finish the run, once all is sent or written."""
        self._run.finish(exit_code=int(failed))


def _unless_set(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return those arguments that no environment variable sets."""
    return {name: value for name, value in arguments.items() if f"WANDB_{name.upper()}" not in os.environ}
