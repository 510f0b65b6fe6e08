"""Cross-validation: a training for each fold of the training file, tested on it."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs

from onion.checkpointing.atomic_files import replace_file
from onion.errors import DataError
from onion.tasks.data.data_files import DataFiles
from onion.tasks.data.features.hashing import ending_of
from onion.tasks.data.prepared import json_line
from onion.tasks.data.rows import file_rows
from onion.tasks.finetune.config_file import resolve
from onion.tasks.finetune.fine_tune import Trained
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.run_files import read_json, write_json
from onion.tasks.finetune.run_folder import settings_record
from onion.tasks.finetune.settings import Settings
from onion.tasks.registry import get_task
from onion.tasks.tuning.series import claimed, train_in
from onion.validation import is_whole

RECORD_FILE, REPORT_FILE, PREDICTIONS_FILE = "folds.json", "cross_validation.json", "predictions.jsonl"
ANY_FOLD = "1/2"
"""Stands where settings need a dev file and are not those of a fold yet."""

log = logging.getLogger("onion")


def cross_validate(
    settings: Settings | Mapping[str, Any], output: str | Path, folds: int = 5, *, quiet: bool = False
) -> Trained:
    """Train once for each fold of the training file, test on it, and average the figures.

        cross_validate({"task": "classification", "train": "all.tsv", "encoder": "minilm"}, "folds", folds=5)

    The folds are drawn with the seed of the settings, from each label by itself (stratified); rows of one question
    (``qid`` of ``matching``) stay together. Each training is an ordinary one with ``dev`` set to its fold, ``1/5``, in
    ``fold-1`` of the folder. ``predictions.jsonl`` has what is predicted for each row by the training that was tested
    on it, with its file and line (of tasks that read rows). The same call continues an interrupted one to the same
    figures.

    Args:
        settings: of the training, of one task; ``dev`` is not used. A mapping is read like a config file.
        output: the folder.
        folds: how many, >= 2. Default 5.
        quiet: whether progress bars are hidden. Default False.

    Returns:
        The mean of each figure of the best checkpoints, and its sample standard deviation as ``NAME.std``, which
        ``cross_validation.json`` has too, with the figures of each fold; the number of the signal, if one came.

    Raises:
        OnionError: a setting, a file or the folder is invalid.
    """
    begun, output = perf_counter(), Path(output)
    if not (is_whole(folds) and folds >= 2):
        raise DataError(f"folds must be an integer >= 2, got {folds!r}")
    base = _without_dev(settings)
    record = settings_record(base, _files(base))
    reports: list[dict[str, Any]] = []
    with claimed(output, RECORD_FILE, {**record, "folds": folds}, [REPORT_FILE, PREDICTIONS_FILE]):
        done = read_json(output, REPORT_FILE)["folds"] if (output / REPORT_FILE).exists() else []
        for number in range(1, folds + 1):
            if number <= len(done):
                reports.append(done[number - 1])
                continue
            log.info("fold %d of %d", number, folds)
            fold = attrs.evolve(base, dev=f"{number}/{folds}")
            trained = train_in(output / f"fold-{number}", fold, quiet)
            if trained.signal is not None:
                return Trained({"folds": len(reports), "output": str(output)}, trained.signal)
            reports.append(trained.report)
            write_json(output / REPORT_FILE, {**summary(reports), "folds": reports})
        if not (output / PREDICTIONS_FILE).exists():
            replace_file(output / PREDICTIONS_FILE, _predictions(base, output, folds))
    seconds = round(perf_counter() - begun, 1)
    return Trained({"folds": folds, **summary(reports), "seconds": seconds, "output": str(output)}, None)


def summary(reports: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the mean of each figure, and its sample standard deviation as ``NAME.std`` where there are two reports.

    Args:
        reports: of trainings; what is no figure of a test (``step``, ``seconds``, ...) is left out.
    """
    names = [name for name in reports[0] if name.startswith("dev.")]
    found: dict[str, float] = {}
    for name in names:
        values = [report[name] for report in reports]
        found[name] = statistics.fmean(values)
        if len(values) > 1:
            found[f"{name}.std"] = statistics.stdev(values)
    return found


def _without_dev(settings: Settings | Mapping[str, Any]) -> Settings:
    """Return the settings of a training of one task, which ``dev`` does not matter to."""
    if isinstance(settings, Mapping):
        if "tasks" in settings:
            raise DataError("cross-validation is of one task; give it the settings of one, without tasks")
        found = resolve({**settings, "dev": ANY_FOLD})
        assert isinstance(found, Settings)
        return found
    return attrs.evolve(settings, dev=ANY_FOLD)


def _files(settings: Settings, dev: str | None = None) -> DataFiles:
    task = get_task(settings.task, settings.options)
    return DataFiles.of(settings.train, dev, settings.columns, settings.seed, task.together)


def _predictions(settings: Settings, output: Path, folds: int) -> Iterator[bytes]:
    """Yield a line for each row that was tested on, fold by fold."""
    for number in range(1, folds + 1):
        tested = _files(settings, f"{number}/{folds}").dev
        assert tested is not None
        if ending_of(tested) != ".jsonl":  # of a text there are no rows to predict for
            return
        predictor = Predictor.load(output / f"fold-{number}")
        predictions = predictor(predictor.task.rows(tested, labelled=False))  # the training has told its warnings
        for row, predicted in zip(file_rows(tested, []), predictions, strict=True):
            yield json_line({"file": str(row.path), "line": row.line, "fold": number, **predicted})
