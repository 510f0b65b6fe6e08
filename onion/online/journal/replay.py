"""Replay: repeat a run from its samples and its journal."""

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
from onion.online.control.control_server import ControlServer
from onion.online.journal.journal import FILE, Journal, journal_in
from onion.online.stream.stream_provider import StreamProvider


def replay(folder: Path, make: Callable[[Path], Runner], out: Path) -> dict[str, Any]:
    """Repeat a run up to its newest checkpoint, and compare the results.

    Sources are read through ``replay_reader()``: nothing is removed from them, and they must still contain all samples
    from the beginning. No service is started, and nothing in the folder of the original run is changed.

    Args:
        folder: of the original run, with its checkpoints and its journal.
        make: returns the runner, with a Saver that saves in the given folder: the function that made the original.
        out: folder of the replay; it must not exist yet, or be empty.

    Returns:
        ``{"step": of the checkpoint, "commands": carried out, "same": bool, "differs": [item/key, ...]}``.

    Raises:
        CheckpointError: there is no checkpoint or no journal, or ``out`` is not empty.
        CompositionError: the runner has no Journal, or a source has no ``replay_reader``.
        DataError: samples have been removed.
    """
    first = checkpoint.newest(folder)
    if first is None or not journal_in(folder).exists():
        raise CheckpointError(f"{folder} contains no run with a journal; it needs a checkpoint and {FILE}.")
    if out.exists() and any(out.iterdir()):
        raise CheckpointError(f"{out} is not empty; choose another folder for the replay.")
    out.mkdir(parents=True, exist_ok=True)
    runner = _repeat(lambda: make(out), first, folder, out)
    second = checkpoint.newest(out)
    if second is None or second.step != first.step:
        ended = 0 if second is None else second.step
        raise CheckpointError(
            f"the replay ended at step {ended} and not at {first.step}; does its Saver save in the folder that it is "
            "given?"
        )
    differs = sorted(_differences(first, second, runner))
    return {"step": first.step, "commands": _commands(runner), "same": not differs, "differs": differs}


def _repeat(make: Callable[[], Runner], first: Checkpoint, folder: Path, out: Path) -> Runner:
    """Run up to a checkpoint, resuming wherever the original run was stopped and resumed; return the last runner."""
    runner, before = make(), (-1, -1)
    _require_journal(runner)
    with journal_in(folder).open("rb") as journal:  # what came after the checkpoint is not compared
        (out / FILE).write_bytes(journal.read(int(first.items[runner[Journal].name]["offset"])))
    while True:
        # Commands after the last step are found at the boundary behind it, where a ControlServer ends the run.
        steps = first.step + 1 if runner.all(ControlServer) else first.step
        state = _detached(runner, first).run(steps=steps)
        now = (state.step, runner[Journal].place)
        if runner[Journal].is_replayed(_batches(runner, state)) or now == before:
            return runner
        runner, before = make(), now


def _batches(runner: Runner, state: State) -> int:
    """Return how many batches a run has drawn."""
    drawn = [
        int(item.state_dict()["batches"]) for item in runner.walk() if isinstance(item, StreamProvider | ControlServer)
    ]
    return drawn[0] if drawn else state.step


def _require_journal(runner: Runner) -> None:
    if not runner.all(Journal):
        raise CompositionError(f"the runner has no Journal, so its inputs are unknown.\n\n{runner}")


def _detached(runner: Runner, first: Checkpoint) -> Runner:
    """Let a runner read samples without removing them, start no service, and write no file of the original run."""
    drawn = [int(saved["batches"]) for name, saved in first.items.items() if "batches" in saved and name in runner]
    for provider in runner.all(StreamProvider):
        replay_reader = getattr(provider.source, "replay_reader", None)
        if replay_reader is None:
            raise CompositionError(
                f"{type(provider.source).__name__} cannot be replayed: it has no method 'replay_reader'."
            )
        provider.source, provider.rejected = replay_reader(), None
    for journal in runner.all(Journal):
        journal.until, journal.path = drawn[0] if drawn else first.step, None
    for control in runner.all(ControlServer):
        control.port = None
    return runner


def _commands(runner: Runner) -> int:
    return sum(journal.commands for journal in runner.all(Journal))


def _differences(first: Checkpoint, second: Checkpoint, runner: Runner) -> Iterator[str]:
    """Yield what differs in the states of all items, except what may also differ in a resumed run.

    Random generators are not compared: unseeded ones differ in every process, and where one was used, items differ.
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
