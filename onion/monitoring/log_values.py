"""What a printer or a logger shows: the loss, the metrics, and the items' log values."""

from __future__ import annotations

from onion.engine.state import State


def loss_of(state: State) -> dict[str, float]:
    """Read the loss, if there is one. This waits for the device."""
    return {} if state.loss is None else {"loss": float(state.loss)}


def log_values(state: State) -> dict[str, float]:
    """Return the log values of every item; a name that comes again is prefixed by its item's name."""
    values: dict[str, float] = {}
    for item in state.runner.walk() if state.runner else ():
        for name, value in item.log_values().items():
            values[f"{item.name}.{name}" if name in values else name] = value
    return values
