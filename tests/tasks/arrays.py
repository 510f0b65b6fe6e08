"""Examples and batches for the tests of tasks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from onion.tasks.data.features.examples import Examples


def features_of(task: Any, path: Path, tokenizer: Any, labelled: bool = True, notes: Counter[str] | None = None) -> Any:
    """What a task makes of the rows of a file, as a sequence of examples."""
    rows = list(task.rows(path, labelled))
    return Examples.of(task.features(rows, tokenizer, labelled, Counter() if notes is None else notes))


def tensors(batch: dict[str, Any]) -> dict[str, Any]:
    """A batch with its arrays as tensors."""
    return {name: paddle.to_tensor(each) if isinstance(each, np.ndarray) else each for name, each in batch.items()}
