"""A search for settings: trainings that Optuna proposes, and gives up where they fall behind."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import attrs

from onion import Prune, Saver
from onion.errors import DataError, DivergedError, OnionError
from onion.items.split_on_memory_error import is_memory_error
from onion.paths import anchored
from onion.tasks.finetune.config_file import resolve
from onion.tasks.finetune.fine_tune import Trained, prepare
from onion.tasks.finetune.multitask_settings import MultiTaskSettings
from onion.tasks.finetune.run_folder import RunFolder
from onion.tasks.finetune.settings import Settings
from onion.tasks.tuning.results import BEST_FILE, REPORT_FILE, TABLE_FILE, folder_of, report, write_results
from onion.tasks.tuning.series import claimed, train_in
from onion.tasks.tuning.space import Value, search_space, with_values
from onion.tasks.tuning.study import PRUNERS, Study, opened, require_optuna
from onion.validation import is_whole

if TYPE_CHECKING:
    import optuna

SEARCH_FILE, STUDY_FILE = "search.json", "study.db"
OWN_FILES = (STUDY_FILE, BEST_FILE, REPORT_FILE, TABLE_FILE)
log = logging.getLogger("onion")


def tune(
    settings: Settings | MultiTaskSettings | Mapping[str, Any],
    search: Mapping[str, Any],
    output: str | Path,
    trials: int = 20,
    *,
    pruner: str = "median",
    quiet: bool = False,
) -> Trained:
    """Search for the settings of a training with Optuna; needs the extra ``tune``.

        settings = {"task": "classification", "train": "train.tsv", "dev": "dev.tsv", "encoder": "minilm"}
        tune(settings, {"learning_rate": "1e-5..1e-3:log", "batch_size": [16, 32]}, "search", trials=30)

    Values are proposed by TPE (Bergstra et al. 2011), with the seed of the settings. After each test the metric that
    selects the best checkpoint (``monitor``) is reported; the pruner ends a training that falls behind. A training
    whose loss is not finite any more, or that does not fit into the memory, counts as failed. The same call continues
    an interrupted search to the same result; a call with more trials continues a finished one.

    The folder holds ``study.db`` (the study in Optuna's format), ``trials/0000``, ... (run folders), and the results:
    ``best.json`` (the best settings, for ``onion train --config``), ``tune.json`` and ``trials.csv``.

    Args:
        settings: of the training; a mapping is read like a config file.
        search: setting -> values: a text such as ``1e-5..1e-3:log``, ``64..256:64`` or ``16,32``, or a list.
        output: the folder.
        trials: how many there are to be in all, failed and pruned ones included. Default 20.
        pruner: ``median`` (a training ends whose best figure is below the median of the others after as many tests),
            ``halving`` (successive halving: Jamieson and Talwalkar 2016) or ``none``. Default ``median``.
        quiet: whether progress bars are hidden. Default False.

    Returns:
        The best trial, its value and its parameters, how many trials there are; the number of the signal, if one came.

    Raises:
        OnionError: a setting, an entry of the search, a file or the folder is invalid, or Optuna is missing.
    """
    begun, output = perf_counter(), Path(output)
    require_optuna()
    if not (is_whole(trials) and trials >= 1):
        raise DataError(f"trials must be an integer >= 1, got {trials!r}")
    if pruner not in PRUNERS:
        raise DataError(f"pruner must be one of {', '.join(PRUNERS)}, got {pruner!r}")
    base = resolve(settings) if isinstance(settings, Mapping) else settings
    space = search_space(search, base.as_file())
    runner = prepare(base).onion(anchored(output) / "trials")
    saver, record = runner[Saver], runner[RunFolder].record
    del runner
    if saver.monitor is None:
        raise DataError("a search needs a figure to compare; give one of the tasks a dev file")
    searched = {"search": {name: str(entry) for name, entry in space.items()}, "pruner": pruner}
    with (
        claimed(output, SEARCH_FILE, {**record, **searched}, OWN_FILES),
        opened(anchored(output) / STUDY_FILE, space, base.seed, saver.mode, pruner) as study,
    ):
        signal = Search(study, base, saver.monitor, output, quiet).run(trials)
        if signal is None and study.best() is None:
            raise OnionError(f"none of {trials} trials was completed; {output / TABLE_FILE} tells why each ended.")
        found = report(study, saver.monitor)
    return Trained({**found, "seconds": round(perf_counter() - begun, 1), "output": str(output)}, signal)


@attrs.frozen
class Search:
    """A search that is under way.

    Attributes:
        study: what proposes and judges.
        base: the settings that are not searched.
        monitor: the metric, as it is reported.
        output: the folder.
        quiet: whether progress bars are hidden.
    """

    study: Study
    base: Settings | MultiTaskSettings
    monitor: str
    output: Path
    quiet: bool

    def run(self, trials: int) -> int | None:
        """Run until so many trials are finished; return the signal that ended it early, if any."""
        signal = None
        while signal is None and len(self.study.trials()) < trials:
            trial = self.study.next()
            log.info("trial %d: %s", trial.number, _shown(trial.params))
            signal = self.run_trial(trial)
            write_results(self.study, self.monitor, self.output)
            self._tell(trial.number, trials)
        write_results(self.study, self.monitor, self.output)  # a kill may have come before they were written
        return signal

    def run_trial(self, trial: optuna.Trial) -> int | None:
        """Train with the values of a trial, and tell the study; return the signal that ended it early, if any.

        Raises:
            OnionError: the training is impossible; the message names the trial.
        """
        prune = Prune(trial, self.monitor)
        try:
            settings = resolve(with_values(self.base.as_file(), trial.params))
            trained = train_in(folder_of(self.output, trial.number), settings, self.quiet, [prune])
            if trained.signal is None:
                self._conclude(trial, trained.report.get(self.monitor), prune.pruned)
            return trained.signal
        except DivergedError as error:
            self.study.failed(trial, str(error))
        except OnionError as error:
            raise type(error)(f"trial {trial.number} ({_shown(trial.params)}): {error}") from None
        except Exception as error:
            if not is_memory_error(error):
                raise
            self.study.failed(trial, f"out of memory: {error}")
        return None

    def _conclude(self, trial: optuna.Trial, value: float | None, pruned: bool) -> None:
        if value is None:
            raise DataError(f"{self.monitor} was never reported; set test_every to fewer steps than the training has")
        if math.isfinite(value):
            self.study.completed(trial, value, pruned)
        else:
            self.study.failed(trial, f"{self.monitor} is {value}")

    def _tell(self, number: int, trials: int) -> None:
        trial = next((each for each in self.study.trials() if each.number == number), None)
        if trial is None:  # interrupted
            return
        why = trial.user_attrs.get("error", "failed") if trial.value is None else f"{self.monitor} {trial.value:.6g}"
        best = self.study.best()
        told = "" if best is None else f"; best: {best.value:.6g} in trial {best.number}"
        log.info("trial %d (%d of %d) %s: %s%s", number, number + 1, trials, trial.state.name.lower(), why, told)


def _shown(values: Mapping[str, Value]) -> str:
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )
