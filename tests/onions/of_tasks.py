"""The ready onion of each task, with a tiny encoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from onion import Runner
from onion.tasks.finetune.fine_tune import fine_tune
from onion.tasks.registry import TASKS
from tests.onions.material import OPTIONS, encoder, files
from tests.onions.parts import begun

PASSES = 2  # of three batches


def of_task(name: str, **more: Any) -> Callable[[Path], Runner]:
    def compose(folder: Path) -> Runner:
        settings = {"passes": PASSES, "batch_size": 4, "learning_rate": 3e-3, "test_every": 2, **more}
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / "encoder"  # the same for a second process, whose material stands elsewhere
        place.unlink(missing_ok=True)
        place.symlink_to(encoder())
        options = OPTIONS.get(name, {"max_length": 16})
        return fine_tune(name, *files(name), folder, encoder=str(place), options=options, **settings)

    return compose


OF_TASKS = {
    **{f"task {name}": begun(of_task(name), passes=PASSES) for name in TASKS},
    "task of a stream": begun(of_task("classification", stream=True), passes=PASSES),
    "task with adapters": begun(of_task("classification", lora_rank=2, lora_dropout=0.1, ema_decay=0.9), passes=PASSES),
    "task with recomputed layers": begun(of_task("classification", gradient_checkpointing=True), passes=PASSES),
    "task of a shuffled stream": begun(of_task("classification", stream=True, shuffle_buffer=5), passes=PASSES),
    "task of balanced classes": begun(of_task("classification", class_balanced=True), passes=PASSES),
}
