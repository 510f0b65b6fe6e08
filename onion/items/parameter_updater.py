"""The ring that moves the parameters once the rings inside have made gradients."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onion.errors import CheckpointError, CompositionError
from onion.item import RunnerItem, Way
from onion.state import State

if TYPE_CHECKING:
    from onion.runner import Runner

SCHEDULE, MASTER = "LR_Scheduler", "master_weights"


class ParameterUpdater(RunnerItem):
    """On the way out: step the optimizer, clear the gradients, step its learning rate schedule.

    Args:
        optimizer: any ``paddle.optimizer``; its clipping, weight decay and learning rate schedule are used as they are.
            A schedule is stepped once a batch.
    """

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        rate: Any = getattr(optimizer, "_learning_rate", None)
        self._step_schedule = getattr(rate, "step", None)
        self._networks: list[tuple[str, Any]] = []

    def check(self, runner: Runner) -> None:
        """Insist on something inside that makes gradients, and on one name for every parameter.

        A gradient machine of your own subclasses GradientMachine or has the class attribute ``makes_gradients = True``.
        """
        machines = [item for item in runner.inside(self) if getattr(item, "makes_gradients", False)]
        if not machines:
            raise CompositionError(
                f"{self.name} has no gradient machine inside it; put a GradientMachine further in (after it)."
            )
        self._networks = [(machine.name, getattr(machine, "network", None)) for machine in machines]

    def on_batch(self, state: State) -> Way:
        """Update the parameters once the rings inside have left."""
        yield
        self.optimizer.step()
        self.optimizer.clear_grad()
        if self._step_schedule is not None:
            self._step_schedule()

    def readings(self) -> dict[str, float]:
        """Return the learning rate."""
        return {"learning_rate": float(self.optimizer.get_lr())}

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizer's state, by the parameters' paths and not by Paddle's global counter (linear_3.w_0)."""
        saved: dict[str, Any] = {}
        paths = self._paths()
        for name, value in self.optimizer.state_dict().items():
            if name == SCHEDULE:
                saved[SCHEDULE] = json.dumps(value, default=float)
            elif name == MASTER:
                saved |= {f"{MASTER}/{paths[parameter]}": weight for parameter, weight in value.items()}
            else:
                parameter = _owner(name, paths)
                saved[f"{paths[parameter]}/{name[len(parameter) + 1 :]}"] = value
        return saved

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take the optimizer's state back.

        Raises:
            CheckpointError: it is the state of other parameters.
        """
        names = {path: name for name, path in self._paths().items()}
        state: dict[str, Any] = {}
        for key, value in saved.items():
            path, _, slot = key.rpartition("/")
            if key == SCHEDULE:
                state[SCHEDULE] = json.loads(value)
            elif path == MASTER:
                state.setdefault(MASTER, {})[names.get(slot, slot)] = _tensor(value)
            elif path not in names:
                raise CheckpointError(f"the saved state of {self.name} belongs to an unknown parameter: {path}.")
            else:
                state[f"{names[path]}_{slot}"] = _tensor(value)
        self.optimizer.set_state_dict(state)

    def _paths(self) -> dict[str, str]:
        """Return {Paddle's name of a parameter: its path}, such as {"linear_3.w_0": "gradient_machine.fc.weight"}."""
        paths: dict[str, str] = {}
        for machine, network in self._networks:
            for path, parameter in network.named_parameters() if network is not None else ():
                paths.setdefault(parameter.name, f"{machine}.{path}")
        for place, parameter in enumerate(_parameters(self.optimizer)):
            paths.setdefault(parameter.name, f"parameter-{place}")
        return paths


def _parameters(optimizer: Any) -> list[Any]:
    """Return an optimizer's parameters, whether it was given a list or groups."""
    return [
        parameter
        for entry in optimizer._parameter_list or []
        for parameter in (entry["params"] if isinstance(entry, dict) else [entry])
    ]


def _owner(name: str, parameters: Mapping[str, str]) -> str:
    """Return the parameter an accumulator belongs to: ``linear_3.w_0_moment1_0`` is ``linear_3.w_0``'s."""
    owners = [parameter for parameter in parameters if name.startswith(f"{parameter}_")]
    if not owners:
        raise CheckpointError(f"the optimizer's {name} belongs to no parameter of the network.")
    return max(owners, key=len)


def _tensor(value: Any) -> Any:
    from onion.device import paddle

    return paddle().to_tensor(value)
