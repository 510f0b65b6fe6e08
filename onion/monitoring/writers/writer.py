"""What a Tracker asks of the client of a tool."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from onion.errors import OnionError
from onion.monitoring.records import Histogram, Image, Kinds, Value


class Writer:
    """Writes the figures of a run where a tool shows them.

    One is opened on the way into a run and closed on its way out; the client exists only between the two. To write to
    another tool, subclass it:

        class Printer(Writer):
            name = "printer"

            def write(self, step, values):
                print(step, values)
    """

    name: str
    """Of the tool, and the default name of the Tracker."""

    kinds: Kinds = (float, Histogram, Image)
    """What it can write."""

    remedy: str = "look at the message of its client"
    """What to do when the client fails, for messages."""

    def open(self, step: int, place: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Open the client.

        Args:
            step: batches finished; of a resumed run those of the checkpoint, so whatever was written of later ones is
                to be taken back, or not to be written again.
            place: what ``place`` returned when the checkpoint was written; empty in a new run.
            settings: of the run, as JSON values.
        """

    def write(self, step: int, values: Mapping[str, Value]) -> None:
        """Write values of a step, by name, floats and what else is in ``kinds``; override this. Steps never go back."""

    def place(self) -> dict[str, Any]:
        """Return where a resumed run has to go on, as JSON values, once all that was written is on its way."""
        return {}

    def close(self, failed: bool) -> None:
        """Finish and close the client; ``failed``: an error ended the run."""


@contextmanager
def extra(name: str, tool: str) -> Iterator[None]:
    """Raise OnionError that names the extra, where a client is imported that is not installed.

    What a client warns of while it is imported concerns its authors, and is not shown.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ModuleNotFoundError as error:
        told = f"{tool} needs {error.name}: pip install 'onion-paddle[{name}]'"
        raise OnionError(f"{told}, or leave {name} out of the loggers.") from None


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested settings as one mapping of texts: ``{"tasks.mrpc.train": "train.tsv"}``."""
    found: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            found[f"{prefix}{name}"] = text
    return found


def table(settings: Mapping[str, Any]) -> str:
    """Return settings as a table in Markdown, for tools that keep texts."""
    rows = [f"| {name} | {text.replace('|', '/')} |" for name, text in flat(settings).items()]
    return "\n".join(["| setting | value |", "| --- | --- |", *rows])
