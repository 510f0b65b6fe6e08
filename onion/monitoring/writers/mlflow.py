"""Runs of MLflow (extra ``[mlflow]``)."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Any

from onion.errors import OnionError
from onion.messages import first_line
from onion.monitoring.records import Image, Value
from onion.monitoring.writers.writer import Writer, extra, flat
from onion.paths import anchored

REFUSED = re.compile(r"[^\w\-./ ]")
"""What MLflow does not admit in names."""

LONGEST, MOST = 6000, 100
"""Characters of a parameter's value, and parameters in a call, that every server of MLflow admits."""


class MLflowWriter(Writer):
    """Write a run of MLflow.

    It goes where ``MLFLOW_TRACKING_URI`` or ``mlflow.set_tracking_uri`` say, else into a database in a folder:
    ``mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db``. The settings are the run's parameters. A resumed run
    goes on in the same run, and writes no figure of a step that the run has. Pictures are artifacts; there are no
    histograms in MLflow.

    Args:
        folder: of the database and the artifacts, where no tracking URI is set.
        experiment: which the run belongs to. Default: ``MLFLOW_EXPERIMENT_NAME``, or else ``onion``.
        run: the name of the run. Default: MLflow makes one.

    Raises:
        OnionError: when the run begins, mlflow is not installed, or cannot begin.
    """

    name = "mlflow"
    kinds = (float, Image)
    remedy = "see whether the server of MLFLOW_TRACKING_URI answers, or unset it to write to the disk"

    def __init__(self, folder: str | Path, experiment: str | None = None, run: str | None = None) -> None:
        self.folder, self.experiment, self.run = anchored(folder), experiment, run

    def open(self, step: int, place: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Begin a run, or go on in one."""
        with extra("mlflow", "MLflow"):
            import mlflow
            from mlflow.entities import Metric, Param
            from mlflow.exceptions import MlflowException
        self._metric = Metric
        here = None if mlflow.is_tracking_uri_set() else self.folder
        if here is not None:
            here.mkdir(parents=True, exist_ok=True)
        with _silent("mlflow", "alembic"):  # it tells of every table that it makes
            self._client = mlflow.MlflowClient(None if here is None else f"sqlite:///{here / 'mlflow.db'}")
            experiment = self._experiment(here)
        if place:
            self._id = place["run"]
            try:
                self._client.update_run(self._id, status="RUNNING")
            except MlflowException as error:
                raise OnionError(
                    f"MLflow has no run {self._id}, in which this one should go on ({first_line(error)}); set "
                    "MLFLOW_TRACKING_URI as it was when the run began, or leave mlflow out of the loggers."
                ) from error
        else:
            self._id = self._client.create_run(experiment, run_name=self.run).info.run_id
            self._write_settings(settings, Param)
        known = self._client.get_run(self._id).data.metrics if place else ()
        self._written = {
            name: max(metric.step for metric in self._client.get_metric_history(self._id, name)) for name in known
        }

    def _experiment(self, here: Path | None) -> str:
        name = self.experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME", "onion")
        found = self._client.get_experiment_by_name(name)
        if found is not None:
            return str(found.experiment_id)
        return str(self._client.create_experiment(name, None if here is None else (here / "artifacts").as_uri()))

    def _write_settings(self, settings: Mapping[str, Any], kind: Any) -> None:
        params = [kind(REFUSED.sub("_", name), text[:LONGEST]) for name, text in flat(settings).items()]
        for begin in range(0, len(params), MOST):
            self._client.log_batch(self._id, params=params[begin : begin + MOST])

    def write(self, step: int, values: Mapping[str, Value]) -> None:
        """Write the values of a step, unless the run has them."""
        now = round(1000 * time())
        named = {REFUSED.sub("_", name): value for name, value in values.items()}
        metrics = [
            self._metric(name, value, now, step)
            for name, value in named.items()
            if isinstance(value, float) and step > self._written.get(name, -1)
        ]
        if metrics:
            self._client.log_batch(self._id, metrics)
        for name, value in named.items():
            if isinstance(value, Image):  # in the same file whenever it is written
                self._client.log_image(self._id, value.picture(), artifact_file=f"images/{name}/{step:08d}.png")

    def place(self) -> dict[str, Any]:
        """Return the id of the run."""
        return {"run": self._id}

    def close(self, failed: bool) -> None:
        """End the run."""
        self._client.set_terminated(self._id, "FAILED" if failed else "FINISHED")


@contextmanager
def _silent(*names: str) -> Iterator[None]:
    """Hear nothing but warnings of some loggers, and nothing of what their authors should replace."""
    loggers = [logging.getLogger(name) for name in names]
    before = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.setLevel(level)
