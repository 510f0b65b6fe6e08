"""End a run that an Optuna study gives up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from onion.engine.state import State
from onion.errors import CompositionError
from onion.monitoring.watcher import Watcher


class OptunaTrial(Protocol):
    """What is used of an ``optuna.Trial``."""

    @property
    def number(self) -> int:
        """The number in the study, from 0."""

    def report(self, value: float, step: int) -> None:
        """Tell the study a value."""

    def should_prune(self) -> bool:
        """Tell whether the study gives the trial up."""


class Prune(Watcher):
    """Report each value of a metric to an Optuna trial, and stop the run when the study's pruner gives it up.

        def objective(trial):
            runner = training(learning_rate=trial.suggest_float("learning_rate", 1e-5, 1e-3, log=True))
            runner = runner.insert_before(Tester, Prune(trial, "tester.accuracy"))
            state = runner.run(passes=3)
            if runner[Prune].pruned:
                raise optuna.TrialPruned
            return state.metrics["tester.accuracy"]

    The steps that Optuna sees are the numbers of the tests, from 0, so trials of other batch sizes are compared after
    as many tests. A run that is resumed, with the same trial of a study in a storage, reports nothing twice and is
    judged as if it had not been interrupted. Put it outside the item that reports the metric.

    Args:
        trial: an ``optuna.Trial`` (or ``optuna.trial.FixedTrial``, which prunes nothing).
        monitor: a name in ``state.metrics``, such as ``tester.accuracy``.

    Attributes:
        pruned: whether the run was given up.

    Raises:
        CompositionError: ``trial`` is no trial; or the item is inside the one that reports the metric, as far as the
            metric's name shows.
    """

    passive = True
    transient = ("trial",)

    def __init__(self, trial: OptunaTrial, monitor: str) -> None:
        super().__init__(monitor)
        if not (hasattr(trial, "report") and hasattr(trial, "should_prune")):
            raise CompositionError(f"Prune: trial must be a trial of Optuna, got {type(trial).__name__}.")
        self.trial = trial
        self.reset()

    def reset(self) -> None:
        """Start with no value."""
        super().reset()
        self.pruned = False

    def initialize(self, state: State) -> None:
        """Stop a resumed run again that was given up."""
        if self.pruned:
            self._stop(state)

    def see(self, state: State) -> None:
        """Report the value, and ask whether to go on."""
        test = self.best.count - 1
        told = _reported(self.trial)
        if test not in told:
            self.trial.report(state.metrics[self.monitor], test)
        elif test < max(told):
            return  # the run was killed after its last checkpoint; that it went on from here is known
        if self.trial.should_prune():
            self.pruned = True
            self._stop(state)

    def _stop(self, state: State) -> None:
        state.stop(f"trial {self.trial.number} was pruned after {self.best.count} tests")

    def state_dict(self) -> dict[str, Any]:
        """Return the number of values, and whether the run was given up."""
        return {**super().state_dict(), "pruned": self.pruned}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore them."""
        super().load_state_dict(saved)
        self.pruned = bool(saved["pruned"])


def _reported(trial: OptunaTrial) -> Mapping[int, float]:
    """Return what the study knows of a trial, also from before an interruption: step -> value."""
    study = getattr(trial, "study", None)  # a FixedTrial has none
    if study is None:
        return {}
    found: Mapping[int, float] = study.get_trials(deepcopy=False)[trial.number].intermediate_values
    return found
