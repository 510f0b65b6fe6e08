"""A side: a fine-tuning by onion from its start: when its first batch is there, what it waits for, its memory."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.common.worker import Answer, serve
from onion import Observer, Runner
from onion.device import use_threads
from onion.engine.timing import Timing
from onion.tasks.finetune.fine_tune import Job
from onion.tasks.finetune.settings import Settings

NEVER = 10**9


def settings_of(job: Mapping[str, Any]) -> Settings:
    """Return what ``onion train`` would have been told, without tests in between.

    Args:
        job: ``train``, ``dev`` (files), ``encoder`` (a folder), ``batch_size``, ``lr``, ``seed``, ``options``.
    """
    names = ("train", "dev", "encoder", "batch_size", "lr", "seed", "options")
    return Settings(task="classify", passes=1, test_every=NEVER, **{name: job[name] for name in names})


def prepare(job: Mapping[str, Any]) -> Callable[..., Answer]:
    """Nothing: a fine-tuning is measured with all that it begins with.

    Args:
        job: as :func:`settings_of` takes it; and ``begun``, the time at which this process was started, ``threads``.
    """

    def work(steps: int) -> Answer:
        """Train; return the seconds to the first batch, and the share of the rest that was waiting for data."""
        use_threads(job["threads"])
        firsts: list[float] = []
        with tempfile.TemporaryDirectory() as room:
            training = Job.prepare(settings_of(job)).onion(Path(room))
            first = Observer(on_batch_begin=lambda state: firsts or firsts.append(time.time()))
            runner = Runner(first, *training.items).timed()
            reached = runner.run(passes=1, steps=steps).step
        return {"first": firsts[0] - job["begun"], "steps": reached, "waits": share_of_waits(runner.timing())}

    return work


def share_of_waits(timing: Timing) -> float:
    """Return which share of the time of all batches the loop was between two of them, or waited for the first."""
    losses = {slot: loss for slot, loss in timing.costs.items() if slot[1] == "on_batch"}
    waited = losses["next batch", "on_batch"].way_in
    return waited / sum(loss.way_in + loss.way_out for loss in losses.values())


if __name__ == "__main__":
    serve(prepare, ("paddlepaddle",))
