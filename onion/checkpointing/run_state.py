"""What a checkpoint takes of a run, and how a run takes it back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onion.checkpointing import checkpoint, rng
from onion.checkpointing.checkpoint import Checkpoint
from onion.checkpointing.extension import Extension
from onion.engine.identity import Identity, differences
from onion.engine.item import RunnerItem, overrides
from onion.engine.state import State
from onion.errors import CheckpointError, OnionError
from onion.validation import is_whole

if TYPE_CHECKING:
    from onion.engine.runner import Runner

log = logging.getLogger("onion")


def tell_of_checkpoints(state: State, kept: Sequence[int]) -> None:
    """Let all items know of which steps there are checkpoints now."""
    for item in state.runner.walk() if state.runner is not None else ():
        item.on_checkpoints_pruned(kept)


def outermost(state: State) -> State:
    """Return the state of the run that all others are within."""
    while state.parent is not None:
        state = state.parent
    return state


def stateful(runner: Runner) -> list[RunnerItem]:
    """Return the items of a runner that have a state to save."""
    return [item for item in runner.walk() if overrides(item, "state_dict")]


def take(state: State, pass_id: int, batch_id: int, onion: Identity, best_step: int | None) -> Checkpoint:
    """Return all that a run needs to resume here, between two batches: finished passes, batches of the current one."""
    run = {
        "counters": {"pass_id": pass_id, "batch_id": batch_id, "step": state.step},
        "loss": None if state.loss is None else float(state.loss),
        "metrics": dict(state.metrics),
        "reported": dict(state.reported),
        "best_step": best_step,
        "generators": rng.capture(),
        "onion": onion,
    }
    return Checkpoint(state.step, run, {item.name: item.state_dict() for item in _saved_items(state)})


def put_back(
    state: State, saved: Checkpoint, onion: Identity, folder: Path, *, anyway: bool = False, extends: bool = False
) -> None:
    """Restore a run, except its random generators, from a checkpoint.

    Args:
        state: of the run that begins.
        saved: the checkpoint.
        onion: what this run is made of.
        folder: of the checkpoint, for messages.
        anyway: resume although this run is made of other things. With other data the current pass starts over.
        extends: resume also if this run has more tasks; they begin as they were built.

    Raises:
        CheckpointError: the run is made of other things, or a state does not fit.
    """
    _refuse_strange(saved, folder, RUN_VALUES)
    there = saved.run["onion"]
    other = differences(there, onion)
    extension = Extension(there, onion, {} if state.runner is None else {i.name: i for i in state.runner.walk()})
    tasks: list[str] = []
    if other and extends:
        extension.refuse_other(folder)
        other, tasks = {}, extension.tasks()
        log.info("the run of step %d is extended by %s", saved.step, ", ".join(tasks) or "stages")
    if other and not anyway:
        more = "extend it by the new tasks (extends=True)" if extension.fits() else "resume it anyway (resume='force')"
        raise CheckpointError(
            f"{folder} holds another run ({'; '.join(_words(other))}); choose an empty folder, or {more}."
        )
    for words in _words(other):
        log.warning("resumed from step %d anyway: %s", saved.step, words)
    new_data = False
    for item in _saved_items(state):
        if item.name in other and item.provides_data:
            new_data = True
        elif item.name in saved.items:
            with _taken_back(item, saved, folder):
                own = saved.items[item.name]
                item.load_state_dict(item.extended(own, tasks) if tasks else own)
        elif item.name in there and item.name not in other and not item.passive:
            raise CheckpointError(f"{folder}: step {saved.step} has no state of {item.name}; choose an empty folder.")
    counters = saved.run["counters"]
    state.pass_id, state.batch_id = counters["pass_id"], 0 if new_data else counters["batch_id"]
    state.step, state.loss = saved.step, saved.run["loss"]
    state.metrics.update(saved.run["metrics"])
    state.reported.update(saved.run["reported"])
    if new_data:
        log.warning("the data differ, so pass %d starts over", state.pass_id)


def _refuse_strange(saved: Checkpoint, folder: Path, names: Iterable[str]) -> None:
    """Raise CheckpointError where some of the run's own values are not such as ``take`` gives."""
    for name in names:
        if name not in saved.run or not RUN_VALUES[name](saved.run[name]):
            file = checkpoint.folder_of(folder, saved.step) / checkpoint.STATE
            how = "cannot be restored" if name in saved.run else "is missing"
            raise CheckpointError(f"{file}: {name!r} of the run {how}; {checkpoint.REMEDY}.")


@contextmanager
def _taken_back(item: RunnerItem, saved: Checkpoint, folder: Path) -> Iterator[None]:
    """Add the item and the checkpoint to an error of ``load_state_dict``."""
    place = checkpoint.folder_of(folder, saved.step)
    try:
        yield
    except OnionError as error:
        raise CheckpointError(f"{place}: {error}") from error
    except Exception as error:
        raise CheckpointError(
            f"{place}: {item.name} ({type(item).__name__}) cannot restore its state from {checkpoint.STATE} and "
            f"{item.name}{checkpoint.ARRAYS} ({type(error).__name__}: {error}); if they were changed, "
            f"{checkpoint.REMEDY}; otherwise its load_state_dict needs what its state_dict does not return."
        ) from error


def _are_generators(value: Any) -> bool:
    """Tell whether all generators can be put to a place; they stay where they are."""
    before = rng.capture()
    try:
        rng.restore(value)
    except Exception:  # whatever Python, numpy and Paddle say of values that are none
        return False
    finally:
        rng.restore(before)
    return True


def _are_steps(value: Any) -> bool:
    return isinstance(value, dict) and all(is_whole(step) and step >= 0 for step in value.values())


RUN_VALUES: Mapping[str, Callable[[Any], bool]] = {
    "counters": lambda value: _are_steps(value) and {"pass_id", "batch_id"} <= value.keys(),
    "loss": lambda value: value is None or isinstance(value, float | int),
    "metrics": lambda value: isinstance(value, dict),
    "reported": _are_steps,
    "best_step": lambda value: value is None or is_whole(value),
    "generators": _are_generators,
    "onion": lambda value: (
        isinstance(value, dict) and all(isinstance(each, dict) and "class" in each for each in value.values())
    ),
}
"""What each of the run's own values has to be."""


def _words(other: Mapping[str, list[str]]) -> list[str]:
    return [words for told in other.values() for words in told]


def _saved_items(state: State) -> list[RunnerItem]:
    return [] if state.runner is None else stateful(state.runner)


def manual_settings(state: State) -> list[Mapping[str, float]]:
    """Return the manually changed settings of all items, which may change between two steps."""
    return [] if state.runner is None else [item.manual_settings() for item in state.runner.walk()]


def best_checkpoint(folder: Path) -> Checkpoint:
    """Return the best checkpoint that a Saver kept in a folder; the newest if there is no best, or it is damaged.

    Raises:
        CheckpointError: there is none.
    """
    newest = checkpoint.newest(folder)
    if newest is None:
        raise CheckpointError(f"{folder} holds no checkpoint; train first.")
    _refuse_strange(newest, folder, ["best_step"])
    best = newest.run["best_step"]
    if best in (None, newest.step):
        return newest
    try:
        return checkpoint.read(checkpoint.folder_of(folder, best))
    except CheckpointError as error:
        log.warning("took step %d as the best checkpoint, since that is lost: %s", newest.step, error)
        return newest
