"""What an onion holds and what it came to, as snapshots by owner."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from onion.checkpointing import checkpoint, rng
from onion.engine.drawing import inner_runs
from onion.engine.item import RunnerItem, overrides, transient_of
from onion.engine.item_tree import subitems, walk
from onion.engine.runner import Runner
from onion.engine.state import State
from onion.items.saver import Saver
from onion.testing.snapshot import MISSING, Difference, Fields, differences, is_layer, snapshot

Held: TypeAlias = dict[str, Fields]
"""Owner (an item's name, a log, the run itself) -> what it holds by name."""

Found: TypeAlias = tuple[str, Difference]
"""A difference, after its owner."""

RUN = "the run"
TIMES = {"seconds"}
"""What is left out of the rows of a log."""


def everyone(runner: Runner) -> dict[str, RunnerItem]:
    """Return the items of an onion by name; and those of others' making that stand in what these run or hold.

    Of a test onion's items nothing is saved; those of onion begin every pass anew.
    """
    found = {item.name: item for item in runner.walk()}
    for title, item in _within(found, {id(item) for item in found.values()}):
        if type(item).__module__.partition(".")[0] != "onion":
            found[title] = item
    return found


def _within(items: Mapping[str, RunnerItem], seen: set[int]) -> Iterator[tuple[str, RunnerItem]]:
    """Give the items that items run (a tester's onion) or hold (a slot's item), at every depth, each once."""
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
    """Return what the attributes of every item hold, but for those that it names in ``transient``."""
    seen: dict[int, tuple[Any, Any]] = {}
    held: Held = {}
    for title, item in everyone(runner).items():
        without = transient_of(item)
        kept = {name: value for name, value in vars(item).items() if name not in without}
        held[title] = Fields(type(item).__name__, {name: snapshot(value, seen) for name, value in kept.items()})
    return held


def outcome(runner: Runner, state: State, folder: Path) -> Held:
    """Return what a run came to: the run's own values, every item's state, the logs, the kept checkpoints."""
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
    """Return the steps of which there are checkpoints."""
    return checkpoint.steps_in(saver.folder)


def _kept(saver: Saver) -> dict[str, Any]:
    """Return the steps of the newest and of the best checkpoint, if they are there, and of all."""
    steps, told = checkpoints(saver), saver.state_dict()
    best = told["best_step"] if told["best"] is not None and told["best_step"] in steps else None
    return {"newest": max(steps, default=None), "best": best, "checkpoints": steps}


def _rows(path: Path) -> list[Any]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


def parameters(runner: Runner) -> dict[tuple[str, str, str], Any]:
    """Return the parameters of every network that an item holds, by item, attribute and path."""
    return {
        (title, name, path): parameter
        for title, item in everyone(runner).items()
        for name, value in vars(item).items()
        if is_layer(value)
        for path, parameter in value.named_parameters()
    }


def compared(one: Held, other: Held) -> Iterator[Found]:
    """Give every difference, after its owner."""
    for owner in {**one, **other}:
        for difference in differences(one.get(owner, MISSING), other.get(owner, MISSING)):
            yield owner, difference
