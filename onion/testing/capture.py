"""Capture what a runner holds and what a run results in, as snapshots by owner."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, TypeAlias

from onion.checkpointing import checkpoint, rng
from onion.engine.drawing import inner_runs
from onion.engine.item import RunnerItem, overrides, transient_of
from onion.engine.item_tree import subitems, walk
from onion.engine.runner import Runner
from onion.engine.state import State
from onion.items.saver import Saver
from onion.testing.snapshot import MISSING, Difference, Fields, differences, is_layer, is_optimizer, snapshot

Held: TypeAlias = dict[str, Fields]
"""Owner (the name of an item, a log, the run itself) -> what it holds by name."""

Found: TypeAlias = tuple[str, Difference]
"""An owner and a difference in it."""

RUN = "the run"
TIMES = {"seconds"}
"""Columns of logs that are not compared."""


def all_items(runner: Runner) -> dict[str, RunnerItem]:
    """Return the items of a runner by name, and user-defined items inside what they run or hold.

    The state of a test runner's items is not saved; items of onion are reset at the start of every test.
    """
    found = {item.name: item for item in runner.walk()}
    for title, item in _within(found, {id(item) for item in found.values()}):
        if type(item).__module__.partition(".")[0] != "onion":
            found[title] = item
    return found


def _within(items: Mapping[str, RunnerItem], seen: set[int]) -> Iterator[tuple[str, RunnerItem]]:
    """Yield the items that items run (a tester's runner) or hold (a slot's item), at every depth, each once."""
    for title, item in list(items.items()):
        there = [each for each in _run_or_held(item) if id(each) not in seen]
        seen |= set(map(id, there))
        new = {f"{title}: {each.name}": each for each in there}
        yield from new.items()
        yield from _within(new, seen)


def _run_or_held(item: RunnerItem) -> list[RunnerItem]:
    held = [each for each in vars(item).values() if isinstance(each, RunnerItem) and not subitems(each)]
    return [*held, *(each for _, nested in inner_runs(item) for each in walk(nested))]


def attributes(runner: Runner) -> Held:
    """Return the attributes of every item, except those named in its ``transient``."""
    seen: dict[int, tuple[Any, Any]] = {}
    held: Held = {}
    for title, item in all_items(runner).items():
        without = transient_of(item)
        kept = {name: value for name, value in vars(item).items() if name not in without}
        held[title] = Fields(type(item).__name__, {name: snapshot(value, seen) for name, value in kept.items()})
    return held


def outcome(runner: Runner, state: State, folder: Path) -> Held:
    """Return the result of a run: its counters and metrics, every item's state, the logs, the kept checkpoints."""
    fields = ("pass_id", "batch_id", "step", "metrics", "reported", "stopped")
    run = {
        **{name: getattr(state, name) for name in fields},
        "loss": None if state.loss is None else float(state.loss),
        "generators": rng.capture(),
    }
    held: Held = {}
    for item in runner.walk():
        if overrides(item, "state_dict"):
            without = transient_of(item)
            saved = {key: value for key, value in item.state_dict().items() if key not in without}
            held[item.name] = Fields(type(item).__name__, snapshot(saved))
    held[RUN] = Fields("State", snapshot(run))
    for saver in runner.all(Saver):
        held[f"the folder of {saver.name}"] = Fields("folder", _kept(saver))
    for path in sorted(folder.rglob("*.jsonl")):
        held[f"the log {path.relative_to(folder)}"] = Fields("log", {"rows": _rows(path)})
    return held


def checkpoints(saver: Saver) -> list[int]:
    """Return the steps of all checkpoints."""
    return checkpoint.steps_in(saver.folder)


def _kept(saver: Saver) -> dict[str, Any]:
    """Return the steps of the newest and the best checkpoint, if they exist, and of all."""
    steps, saved = checkpoints(saver), saver.state_dict()
    best = saved["best_step"] if saved["best"] is not None and saved["best_step"] in steps else None
    return {"newest": max(steps, default=None), "best": best, "checkpoints": steps}


def _rows(path: Path) -> list[Any]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


def parameters(runner: Runner) -> dict[tuple[str, str, str], Any]:
    """Return the parameters of every network that an item holds, by item, attribute and path."""
    return {
        (title, name, path): parameter
        for title, item in all_items(runner).items()
        for name, value in vars(item).items()
        if is_layer(value)
        for path, parameter in value.named_parameters()
    }


def compared(one: Held, other: Held) -> Iterator[Found]:
    """Yield every difference with its owner."""
    for owner in {**one, **other}:
        for difference in differences(one.get(owner, MISSING), other.get(owner, MISSING)):
            yield owner, difference


# -- state of networks and optimizers that no checkpoint contains ------------------------------------------------------


def hidden(items: Mapping[str, Any]) -> Held:
    """Return the state of items' networks and optimizers that is not saved, by path.

    Of a network: non-persistable buffers and attributes added to a layer, at every depth. Of an optimizer: attributes
    that Paddle's code does not use. Names in the ``transient`` of their classes are left out.

    Args:
        items: by name.
    """
    seen: dict[int, tuple[Any, Any]] = {}
    return {
        title: Fields(
            type(item).__name__,
            {
                f"{name}.{path}": snapshot(value, seen)
                for name, holder in vars(item).items()
                for path, value in _unsaved(holder)
            },
        )
        for title, item in items.items()
    }


def _unsaved(holder: Any) -> Iterator[tuple[str, Any]]:
    if is_layer(holder):
        for path, layer in holder.named_sublayers(include_self=True):
            for name, value in _of_layer(layer):
                yield f"{path}.{name}" if path else name, value
    elif is_optimizer(holder):
        known = {*_names_in(type(holder)), *transient_of(holder)}
        yield from ((name, value) for name, value in vars(holder).items() if name not in known)


def _of_layer(layer: Any) -> Iterator[tuple[str, Any]]:
    from onion.device import paddle

    known = {*vars(paddle().nn.Layer()), *transient_of(layer)}
    yield from ((name, value) for name, value in vars(layer).items() if name not in known and not is_layer(value))
    passing = layer._non_persistable_buffer_names_set
    yield from ((name, value) for name, value in layer._buffers.items() if name in passing and name not in known)


def _names_in(kind: type) -> Iterator[str]:
    """Yield all names used by the methods of a class and its parents, as far as these are Paddle's."""
    for parent in kind.__mro__:
        if parent.__module__.partition(".")[0] == "paddle":
            for method in vars(parent).values():
                function = getattr(method, "__wrapped__", method)
                if isinstance(function, FunctionType):
                    yield from function.__code__.co_names
