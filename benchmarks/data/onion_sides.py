"""Sides: texts to features, features from the cache, and a fine-tuning from its start, by onion."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.data.work import TEXTS_PER_CALL, Answer, texts_a_second
from onion import DataProvider, Observer, Runner, RunnerItem
from onion.device import use_threads
from onion.engine.state import State
from onion.engine.timing import Timing
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.data.features.cache import chunks_of_features
from onion.tasks.finetune.fine_tune import Job
from onion.tasks.finetune.settings import Settings

LIBRARIES = ("paddlepaddle", "tokenizers")
NEVER = 10**9


def texts(job: Mapping[str, Any]) -> Callable[..., Answer]:
    """Read the texts of a file once, to turn them into features; job: ``file``, ``tokenizer``, ``max_length``."""
    path = Path(job["file"])
    task = Classification(max_length=job["max_length"]).fitted(path)
    texts = [row.cells["text_a"] for row in task.rows(path, labelled=True)]
    parts = [texts[start : start + TEXTS_PER_CALL] for start in range(0, len(texts), TEXTS_PER_CALL)]

    def features(tokenizer: Tokenizer) -> list[Any]:
        """Do what making the cache does, but for writing it: read, check, tokenise, number the labels."""
        rows = task.rows(path, labelled=True)
        chunks = chunks_of_features(task, rows, tokenizer, True, Counter())
        return [example["ids"] for chunk in chunks for example in chunk]

    def tokenized(tokenizer: Tokenizer) -> list[Any]:
        return [found.ids for part in parts for found in tokenizer(part, max_length=job["max_length"])]

    ways = {"features": features, "tokenizer": tokenized}
    return texts_a_second(ways, lambda: Tokenizer.from_pretrained(job["tokenizer"]))  # a new one: it remembers no word


def settings_of(job: Mapping[str, Any]) -> Settings:
    names = ("train", "dev", "encoder", "batch_size", "seed", "options")
    given = {"task": "classification", "passes": 1, "test_every": NEVER, "learning_rate": job["lr"]}
    return Settings(**given, **{name: job[name] for name in names})


class Count(RunnerItem):
    def __init__(self) -> None:
        self.tokens = 0
        self.places: list[int] = []

    def on_batch(self, state: State) -> None:
        self.tokens += sum(state.batch["lengths"])
        self.places += state.batch["places"]


def cached(job: Mapping[str, Any]) -> Callable[[], Answer]:
    """Open the cache of features, to read it as a training does, through its DataProvider; the job is a training's."""
    ready = Job.prepare(settings_of(job))
    with tempfile.TemporaryDirectory() as room:
        provider = ready.onion(Path(room))[DataProvider]
    lengths = ready.train_set.lengths  # type: ignore[union-attr]  # cached, not streamed

    def work() -> Answer:
        """Read a pass; return tokens a second.

        Raises:
            SystemExit: not every example came, or not once.
        """
        count = Count()
        begun = perf_counter()
        Runner(provider, count).run(passes=1)
        seconds = perf_counter() - begun
        if sorted(count.places) != list(range(len(lengths))) or count.tokens != lengths.sum():
            raise SystemExit("a pass did not bring every example once: no times")
        return {"tokens": count.tokens / seconds}

    return work


def training(job: Mapping[str, Any]) -> Callable[..., Answer]:
    """Prepare nothing: a fine-tuning is measured from ``begun``, the time at which this process was started."""

    def work(steps: int) -> Answer:
        """Train; return the seconds to the first batch, and the share of the rest that was waiting for data."""
        use_threads(job["threads"])
        firsts: list[float] = []
        with tempfile.TemporaryDirectory() as room:
            runner = Job.prepare(settings_of(job)).onion(Path(room))
            first = Observer(on_batch_begin=lambda state: firsts.extend([] if firsts else [time.time()]))
            runner = Runner(first, *runner.items).timed()
            reached = runner.run(passes=1, steps=steps).step
        return {"first": firsts[0] - job["begun"], "steps": reached, "waits": share_of_waits(runner.timing())}

    return work


def share_of_waits(timing: Timing) -> float:
    """Return which share of the time of all batches the loop was between two of them, or waited for the first."""
    costs = {slot: cost for slot, cost in timing.costs.items() if slot[1] == "on_batch"}
    waited = costs["next batch", "on_batch"].way_in
    return waited / sum(cost.way_in + cost.way_out for cost in costs.values())
