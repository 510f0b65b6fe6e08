"""Classification and regression of a text or a pair, as in transformers' run_glue.py.

Figures are scikit-learn's and scipy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer

from benchmarks.results.hugging_face.files import table
from benchmarks.results.hugging_face.training import Prepared


def classification(job: dict[str, Any], tokenizer: Any) -> Prepared:
    """Prepare a job with a label a row."""
    rows = table(job["train"])
    names = sorted({row["label"] for row in rows})

    def numbered(rows: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
        return _examples(rows, [names.index(row["label"]) for row in rows], tokenizer, job)

    def figures(trainer: Trainer, path: str) -> dict[str, float]:
        found = trainer.predict(numbered(table(path)))
        true, predicted = found.label_ids, np.argmax(found.predictions, axis=-1)
        told = {"accuracy": accuracy_score(true, predicted), "matthews": matthews_corrcoef(true, predicted)}
        return {**told, "f1": f1_score(true, predicted)} if len(names) == 2 else told

    model = AutoModelForSequenceClassification.from_pretrained(job["encoder"], num_labels=len(names))
    return Prepared(model, numbered(rows), DataCollatorWithPadding(tokenizer), figures)


def regression(job: dict[str, Any], tokenizer: Any) -> Prepared:
    """Prepare a job with a number a row, as it stands in the file; the loss is the mean squared error."""

    def examples(path: str) -> list[dict[str, Any]]:
        rows = table(path)
        return _examples(rows, [float(row["label"]) for row in rows], tokenizer, job)

    def figures(trainer: Trainer, path: str) -> dict[str, float]:
        found = trainer.predict(examples(path))
        true, predicted = np.ravel(found.label_ids), np.ravel(found.predictions)
        return {"pearson": pearsonr(true, predicted)[0], "spearman": spearmanr(true, predicted)[0]}

    model = AutoModelForSequenceClassification.from_pretrained(job["encoder"], num_labels=1, problem_type="regression")
    return Prepared(model, examples(job["train"]), DataCollatorWithPadding(tokenizer), figures)


def _examples(
    rows: Sequence[dict[str, str]], labels: Sequence[float], tokenizer: Any, job: dict[str, Any]
) -> list[dict[str, Any]]:
    seconds = [row["text_b"] for row in rows] if "text_b" in rows[0] else None
    length = job["options"]["max_length"]
    found = tokenizer([row["text_a"] for row in rows], seconds, truncation="longest_first", max_length=length)
    columns = {**found, "labels": labels}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
