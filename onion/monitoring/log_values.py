"""What a printer or a logger shows: the loss, the metrics, and what the items themselves tell."""

from __future__ import annotations

from onion.engine.state import State


def loss_of(state: State) -> dict[str, float]:
    """Read the loss, if there is one. This waits for the device."""
    return {} if state.loss is None else {"loss": float(state.loss)}


def log_values(state: State) -> dict[str, float]:
    """Ask every item for its readings; where two tell the same name, the item's name stands before it."""
    told: dict[str, float] = {}
    for item in state.runner.walk() if state.runner else ():
        for name, value in item.log_values().items():
            told[f"{item.name}.{name}" if name in told else name] = value
    return told
