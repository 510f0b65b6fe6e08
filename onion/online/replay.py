"""A run done again, from its samples and its record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onion.checkpointing import checkpoint
from onion.checkpointing.checkpoint import Checkpoint
from onion.engine.item import transient_of
from onion.engine.runner import Runner
from onion.engine.state import State
from onion.errors import CheckpointError, CompositionError
from onion.online.control import Control
from onion.online.record import Record
from onion.online.stream_provider import StreamProvider

RECORD = "control.jsonl"


def replay(folder: Path, make: Callable[[Path], Runner], out: Path) -> dict[str, Any]:
    """Do a run again, up to its newest checkpoint, and hold the two against each other.

    Sources are read aside: nothing is taken from them, and they still have to have all samples from the beginning. No
    service is started, and nothing of the first run's folder is changed.

    Args:
        folder: of the run: its checkpoints and its ``control.jsonl``.
        make: returns the onion with a Saver that saves in a folder: the function that made the first run's.
        out: the folder of the run to come, which does not exist yet or is empty.

    Returns:
        ``{"step": the checkpoint's, "commands": carried out, "same": bool, "differs": [item/key, ...]}``.

    Raises:
        CheckpointError: there is no checkpoint or no record, or ``out`` holds something.
        CompositionError: the onion has no Record, or a source cannot be read aside.
        DataError: samples are gone.
    """
    first = checkpoint.newest(folder)
    if first is None or not (folder / RECORD).exists():
        raise CheckpointError(f"{folder} holds no run with a record; it needs a checkpoint and {RECORD}.")
    if out.exists() and any(out.iterdir()):
        raise CheckpointError(f"{out} is not empty; choose another folder for the run that is done again.")
    out.mkdir(parents=True, exist_ok=True)
    runner = _done_again(lambda: make(out), first, folder, out)
    second = checkpoint.newest(out)
    if second is None or second.step != first.step:
        ended = 0 if second is None else second.step
        raise CheckpointError(
            f"the run that was done again ended at step {ended} and not at {first.step}; does its onion save in the "
            "folder that it is given?"
        )
    differs = sorted(_differences(first, second, runner))
    return {"step": first.step, "commands": _commands(runner), "same": not differs, "differs": differs}


def _done_again(make: Callable[[], Runner], first: Checkpoint, folder: Path, out: Path) -> Runner:
    """Run up to a checkpoint, and go on where the first run was stopped and started again; return the last onion."""
    runner, before = make(), (-1, -1)
    _insist_on_record(runner)
    with (folder / RECORD).open("rb") as record:  # what came after the checkpoint is not compared
        (out / RECORD).write_bytes(record.read(int(first.items[runner[Record].name]["offset"])))
    while True:
        # Commands that came after the last step are found at the border behind it, where a Control ends the run.
        steps = first.step + 1 if runner.all(Control) else first.step
        state = _aside(runner, first).run(steps=steps)
        now = (state.step, runner[Record].place)
        if runner[Record].is_done_again(_batches(runner, state)) or now == before:
            return runner
        runner, before = make(), now


def _batches(runner: Runner, state: State) -> int:
    """Return how many batches a run has drawn."""
    drawn = [int(item.state_dict()["batches"]) for item in runner.walk() if isinstance(item, StreamProvider | Control)]
    return drawn[0] if drawn else state.step


def _insist_on_record(runner: Runner) -> None:
    if not runner.all(Record):
        raise CompositionError(f"the onion has no Record, so nothing tells what came into it.\n\n{runner}")


def _aside(runner: Runner, first: Checkpoint) -> Runner:
    """Let an onion read its samples without taking them, listen to nobody, and write nothing of the first run's."""
    drawn = [int(saved["batches"]) for name, saved in first.items.items() if "batches" in saved and name in runner]
    for provider in runner.all(StreamProvider):
        aside = getattr(provider.source, "aside", None)
        if aside is None:
            raise CompositionError(f"{type(provider.source).__name__} cannot be read aside: it has no method 'aside'.")
        provider.source, provider.rejected = aside(), None
    for record in runner.all(Record):
        record.until, record.path = drawn[0] if drawn else first.step, None
    for control in runner.all(Control):
        control.port = None
    return runner


def _commands(runner: Runner) -> int:
    return sum(record.commands for record in runner.all(Record))


def _differences(first: Checkpoint, second: Checkpoint, runner: Runner) -> Iterator[str]:
    """Give what differs in the states of all items, but for what a resumed run may have otherwise too.

    Not of the random generators: one that nobody has seeded is another in each process, and where it was drawn from,
    the items differ.
    """
    for name in first.items.keys() | second.items.keys():
        if name not in first.items or name not in second.items:
            yield name
            continue
        item = runner[name]
        if not item.passive:
            passed_over = transient_of(item)
            yield from (
                f"{name}/{key}" for key in _other(first.items[name], second.items[name]) if key not in passed_over
            )


def _other(one: Mapping[str, Any], two: Mapping[str, Any]) -> Iterator[str]:
    for key in one.keys() | two.keys():
        if key not in one or key not in two or not _same(one[key], two[key]):
            yield key


def _same(one: Any, two: Any) -> bool:
    if hasattr(one, "dtype") or hasattr(two, "dtype"):
        one, two = np.asarray(one), np.asarray(two)
        return bool(one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes())
    return bool(one == two)
