"""A smaller model beside the one that it was made of: figures on the same file, sizes, and time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from time import perf_counter
from typing import Any

from onion.tasks.data.features.cache import cached_features
from onion.tasks.finetune.loop_settings import TEST_BATCH_SIZE
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.recipes import evaluation_onion

TEXTS = 1000
"""Rows that are predicted to measure the time, at most."""

TURNS = 3
"""How often each side is measured; the shortest time counts, since anything else on the machine adds to it."""


def compared(
    teacher: Predictor,
    student: Predictor,
    path: str,
    exported: Predictor | None = None,
    seed: int = 1,
    batch_size: int = TEST_BATCH_SIZE,
) -> dict[str, Any]:
    """Return figures, parameters and seconds per 1000 texts of both, and how many times faster the student is.

    All predict the same rows in turns, from text to label, with the threads that Paddle has.

    Args:
        teacher: the large model.
        student: what learned from it, of the same task.
        path: a labelled file.
        exported: what was made of the student by ``onion export``. Default: nothing was.
        seed: of the training, by which masked words are drawn. Default 1.
        batch_size: of the training's tests, by which they are drawn too. Default 64.
    """
    sides = {"teacher": teacher, "student": student, **({} if exported is None else {"exported": exported})}
    seconds, _ = predicted_in_turns(sides, path, TEXTS)
    found: dict[str, Any] = {}
    for name, side in sides.items():
        if side is not student:  # its figures are those of the training's best test
            found |= {f"{name}.{figure}": value for figure, value in figures(side, path, seed, batch_size).items()}
        if side is not exported:
            found[f"{name}.parameters"] = sum(int(each.size) for each in side.network.parameters())
        found[f"{name}.seconds_per_1000"] = round(seconds[name], 4)
    found["times_faster"] = round(seconds["teacher"] / seconds["student"], 1)
    if exported is not None:
        found["exported.times_faster"] = round(seconds["teacher"] / seconds["exported"], 1)
    return found


def figures(predictor: Predictor, path: str, seed: int = 1, batch_size: int = TEST_BATCH_SIZE) -> dict[str, float]:
    """Return the figures of a model on a labelled file; ``seed`` and ``batch_size`` are as in :func:`compared`."""
    task, tokenizer = predictor.task, predictor.tokenizer
    items = task.eval_items(tokenizer, seed)
    examples = cached_features(task, path, tokenizer)
    metric = task.metric(path)
    test = evaluation_onion(task, predictor.network, examples, metric, tokenizer.pad_id, items, batch_size=batch_size)
    return dict(test.run(passes=1).metrics)


def predicted_in_turns(
    sides: Mapping[str, Predictor], path: str, texts: int
) -> tuple[dict[str, float], dict[str, list[Any]]]:
    """Let each of some models predict the first rows of a file, in turns.

    Args:
        sides: name -> model.
        path: the file.
        texts: rows, at most.

    Returns:
        Of each model the seconds per 1000 texts, by the shortest of ``TURNS`` times, and what it predicts.
    """
    times: dict[str, list[float]] = {name: [] for name in sides}
    predicted: dict[str, list[Any]] = {}
    for _ in range(TURNS):
        for name, side in sides.items():
            rows = list(islice(side.task.rows(path, labelled=False), texts))
            begun = perf_counter()
            predicted[name] = list(side(rows))
            times[name].append((perf_counter() - begun) * 1000 / len(predicted[name]))
    return {name: min(each) for name, each in times.items()}, predicted
