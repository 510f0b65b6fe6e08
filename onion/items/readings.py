"""What a printer or a logger shows: the cost, the metrics, and what the items themselves tell."""

from __future__ import annotations

from onion.state import State


def cost_of(state: State) -> dict[str, float]:
    """Read the cost, if there is one. This waits for the device."""
    return {} if state.cost is None else {"cost": float(state.cost)}


def readings(state: State) -> dict[str, float]:
    """Ask every item for its readings; where two tell the same name, the item's name stands before it."""
    told: dict[str, float] = {}
    for item in state.runner.walk() if state.runner else ():
        for name, value in item.readings().items():
            told[f"{item.name}.{name}" if name in told else name] = value
    return told
