"""A study of Optuna in a file: what it proposes, and what becomes of each trial.

A proposal depends on the seed, its number and the results before it, and on nothing that a process has in memory. So a
search that is killed and started again proposes what it would have proposed. (A sampler of Optuna draws from one
generator for all trials, which no storage keeps.)
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from onion.errors import CheckpointError, OnionError
from onion.messages import first_line
from onion.monitoring.best import Mode
from onion.tasks.tuning.space import Space

if TYPE_CHECKING:
    import optuna

NAME = "onion"
"""Of the study in its file."""

PRUNERS = {"median": "MedianPruner", "halving": "SuccessiveHalvingPruner", "none": "NopPruner"}
"""Name -> class in ``optuna.pruners``."""


@attrs.frozen
class Study:
    """A study that is open.

    Attributes:
        study: Optuna's.
        space: what is searched.
        seed: of the proposals.
    """

    study: optuna.Study
    space: Space
    seed: int

    def trials(self) -> list[optuna.trial.FrozenTrial]:
        """Return the trials that are finished, in order: completed, pruned or failed."""
        return [trial for trial in self.study.get_trials(deepcopy=False) if trial.state.is_finished()]

    def next(self) -> optuna.Trial:
        """Return the trial that was interrupted; otherwise a new one."""
        import optuna

        running = self._in(optuna.trial.TrialState.RUNNING)
        if running:
            # Optuna has no call that goes on with a trial; its own ask() ends like this.
            return self._chosen(optuna.Trial(self.study, running[0]._trial_id))
        if not self._in(optuna.trial.TrialState.WAITING):
            # All values in one transaction; without, each would be written when it is drawn.
            self.study.enqueue_trial(self._proposed())
        return self._chosen(self.study.ask())

    def _proposed(self) -> dict[str, Any]:
        """Return the values of the next trial, drawn in a copy of the study."""
        import optuna

        trials = self.trials()
        seed = int(np.random.SeedSequence([self.seed, len(trials)]).generate_state(1)[0])
        draft = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed), direction=self.study.direction)
        draft.add_trials(trials)
        return self._chosen(draft.ask()).params

    def _chosen(self, trial: optuna.Trial) -> optuna.Trial:
        for name, entry in self.space.items():
            entry.suggest(trial, name)
        return trial

    def _in(self, state: optuna.trial.TrialState) -> list[optuna.trial.FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=[state])

    def completed(self, trial: optuna.Trial, value: float, pruned: bool) -> None:
        """Record the result of a trial; of a pruned one Optuna takes its last report."""
        import optuna

        if pruned:
            self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            self.study.tell(trial, value)

    def failed(self, trial: optuna.Trial, why: str) -> None:
        """Record that a trial came to nothing."""
        import optuna

        trial.set_user_attr("error", why)
        self.study.tell(trial, state=optuna.trial.TrialState.FAIL)

    def best(self) -> optuna.trial.FrozenTrial | None:
        """Return the best of the completed trials; None: there is none."""
        import optuna

        return self.study.best_trial if self._in(optuna.trial.TrialState.COMPLETE) else None


def require_optuna() -> None:
    """Raise OnionError if Optuna is not installed."""
    try:
        import optuna  # noqa: F401
    except ModuleNotFoundError:
        raise OnionError("a search needs Optuna: pip install 'onion-paddle[tune]'") from None


@contextmanager
def opened(path: Path, space: Space, seed: int, mode: Mode, pruner: str) -> Iterator[Study]:
    """Open the study in an SQLite file, which Optuna's dashboard reads too; create it if it is missing.

    Args:
        path: the file.
        space: what is searched.
        seed: of the proposals.
        mode: whether more (``max``) or less (``min``) is better.
        pruner: a name in PRUNERS.

    Raises:
        CheckpointError: the file is damaged or cannot be written.
    """
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    with _logged_with_ours(), ExitStack() as closing:
        try:
            storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
            closing.callback(storage.engine.dispose)
            closing.callback(storage.remove_session)
            study = optuna.create_study(
                storage=storage,
                study_name=NAME,
                direction="maximize" if mode == "max" else "minimize",
                pruner=getattr(optuna.pruners, PRUNERS[pruner])(),
                load_if_exists=True,
            )
            yield Study(study, space, seed)
        except (SQLAlchemyError, optuna.exceptions.OptunaError) as error:
            raise CheckpointError(
                f"{path}: cannot be read or written as a study of Optuna ({first_line(error)})."
            ) from None


@contextmanager
def _logged_with_ours() -> Iterator[None]:
    """Pass Optuna's log records on to the handlers of the process, instead of to a handler of its own."""
    log = logging.getLogger("optuna")
    handlers, propagate = log.handlers[:], log.propagate
    log.handlers, log.propagate = [], True
    try:
        yield
    finally:
        log.handlers, log.propagate = handlers, propagate
