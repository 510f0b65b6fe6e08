"""Check that a run which is stopped or killed and resumed ends with the same bits as an uninterrupted one."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import attrs
import numpy as np

from onion.checkpointing import rng
from onion.engine.runner import Runner
from onion.engine.state import State
from onion.errors import OnionError
from onion.items.observer import Observer
from onion.items.saver import Saver
from onion.testing.capture import (
    RUN,
    Found,
    Held,
    all_items,
    attributes,
    checkpoints,
    compared,
    hidden,
    outcome,
    parameters,
)
from onion.testing.report import ended_otherwise, not_deterministic, not_saved
from onion.testing.snapshot import Bits, Difference, snapshot
from onion.testing.snapshot import Path as Place

MANY = 8
"""Cuts that are tried by default, at most."""

OTHER_SEED = 20161

WATCH = "assert_resumes_exactly"
"""The name of the item that is put around a runner."""


def assert_resumes_exactly(
    make: Callable[[Path], Runner],
    folder: str | Path,
    *,
    passes: int | None = None,
    steps: int | None = None,
    cuts: Iterable[int] | None = None,
) -> None:
    """Assert that a run which is stopped or killed, and resumed, ends with the same bits as an uninterrupted one.

        def my_runner(folder):
            paddle.seed(1)
            network = toy_network()
            optimizer = paddle.optimizer.SGD(0.1, parameters=network.parameters())
            data = DataProvider(toy_examples(32), 8, shuffle=True)
            return Runner(Saver(folder, every=3), MyItem(), data, ParameterUpdater(optimizer), GradientMachine(network))

        def test_a_run_with_my_item_resumes_exactly(tmp_path):
            assert_resumes_exactly(my_runner, tmp_path, passes=2)

    The uninterrupted run is made twice, in two folders. Then, for each cut and in a folder of its own, a run is once
    stopped after that step, as ``run(steps=cut)`` does, and once killed on the way out of that batch, so that it
    resumes from an older checkpoint or, if there is none, starts again. Then ``make`` is called again, the random
    generators of Python, numpy and Paddle are seeded differently, every parameter that the run changes is overwritten,
    and it is run to its end.

    Before its first batch every item's attributes are compared with those of the uninterrupted run: numbers, texts,
    arrays, tensors and networks, random generators, lists, dicts and sets of them, and objects that hold them. At the
    end the states of all items, generators, counters, loss, metrics, logs (every ``*.jsonl`` in the folder, without
    "seconds") and the steps of the checkpoints are compared. Attributes and saved scalars in which the two
    uninterrupted runs differ are taken for times and ignored; an item names others that may differ in ``transient``. If
    the end differs though all attributes were equal, state of networks and optimizers that no checkpoint contains is
    compared too: attributes of layers, non-persistable buffers, attributes of an optimizer's subclass.

    Args:
        make: builds the runner, which has a Saver whose folder is ``make``'s argument or inside it. It seeds what it
            needs, as a script does.
        folder: where the runs write; subfolders are made in it.
        passes: of the whole run, as for ``Runner.run``. Default: no limit, for a run that an item ends.
        steps: of the whole run, likewise.
        cuts: steps after which the run is interrupted. Default: every one of up to 8, else 8 spread over the run,
            including the first, the last but one, and both sides of the end of a pass.

    Raises:
        AssertionError: a resumed run differs: the message gives the cut, the item, its attribute or key, both values;
            or two uninterrupted runs have different results.
        OnionError: the runner has no Saver in that folder, or a cut is no step before the last.
        FileExistsError: the folder was used before.
    """
    before = rng.capture()
    try:
        script = Script(make, Path(folder), passes, steps)
        whole = Whole.of(script)
        for cut in _chosen(whole.ends) if cuts is None else cuts:
            whole.require_cut(cut)
            for end in (stop, kill):
                _check(script, whole, cut, end)
    finally:
        rng.restore(before)


def _chosen(ends: list[int]) -> list[int]:
    """Return the steps to cut after: all, or the critical ones and some in between."""
    last = ends[-1] - 1
    if last <= MANY:
        return list(range(1, last + 1))
    critical = {1, last, *(step for step in (ends[0], ends[0] + 1) if step <= last)}
    rest = [step for step in range(1, last + 1) if step not in critical]
    spread = MANY - len(critical)
    return sorted(critical.union(rest[len(rest) * place // spread] for place in range(spread)))


def _check(script: Script, whole: Whole, cut: int, end: Callable[[Script, Runner, int], str]) -> None:
    """Interrupt a run, resume it, and compare."""
    name = f"{end.__name__}-{cut}"
    (script.folder / name).mkdir(parents=True)
    how = end(script, script.begin(name), cut)
    runner = script.begin(name)
    resumed = any(checkpoints(saver) for saver in runner.all(Saver))
    if resumed:
        _overwrite(runner, whole.moved)
    first: dict[Moment, Held] = {}
    unsaved: dict[Moment, Held] = {}

    def look(state: State) -> None:
        if not first:
            first[state.pass_id, state.batch_id] = attributes(runner)
            unsaved[state.pass_id, state.batch_id] = hidden(all_items(runner))

    try:
        state = script.run(runner, on_batch_begin=look)
    except Exception as error:
        raise AssertionError(f"{how}: the resumed run failed with {error!r}") from error
    for moment, held in first.items():
        if found := whole.lacks(compared(whole.held.get(moment, held), held)):
            raise AssertionError(not_saved(how, found, all_items(runner)))
    ended = outcome(runner, state, script.folder / name)
    if not resumed:  # a Logger moves rows that belong to no checkpoint to another file
        ended = {owner: held for owner, held in ended.items() if owner in whole.ended}
    found = whole.lacks(compared(whole.ended, ended))
    if end is stop:  # which saved once more than the uninterrupted run, and so removed an older checkpoint
        found = [(owner, each) for owner, each in found if each.path[:1] != (".checkpoints",)]
    if found:
        lost = [
            each
            for moment, held in unsaved.items()
            for each in whole.lacks(compared(whole.hidden.get(moment, held), held))
        ]
        raise AssertionError(ended_otherwise(how, found, next(iter(first.values()), {}), lost))


def _overwrite(runner: Runner, moved: set[tuple[str, str, str]]) -> None:
    """Seed all generators differently and overwrite what the run changes, so that all must come from the checkpoint."""
    random.seed(OTHER_SEED)
    np.random.seed(OTHER_SEED)
    paddle = sys.modules.get("paddle")
    if paddle is not None:
        paddle.seed(OTHER_SEED)
        for key, parameter in parameters(runner).items():
            if key in moved:
                parameter.set_value(paddle.rand(parameter.shape).astype(parameter.dtype))


# -- a run as a user starts, interrupts and restarts it ----------------------------------------------------------------


class _Killed(BaseException):
    """Not an Exception, so that handlers of errors do nothing, as in a process that is killed."""


@attrs.frozen
class Script:
    """How to start a run."""

    make: Callable[[Path], Runner]
    folder: Path
    passes: int | None
    steps: int | None

    def begin(self, name: str) -> Runner:
        """Build the runner for a subfolder."""
        place = self.folder / name
        runner = self.make(place)
        savers = runner.all(Saver)
        if not savers:
            raise OnionError(f"make returned a runner without a Saver, which cannot be resumed:\n\n{runner}")
        for saver in savers:
            if not saver.folder.resolve().is_relative_to(place.resolve()):
                raise OnionError(
                    f"{saver.name} saves in {saver.folder} whatever folder make is given; use the given folder, so "
                    "that the runs do not share one."
                )
        return runner

    def run(self, runner: Runner, steps: int | None = None, **calls: Callable[[State], object]) -> State:
        """Run it to its end, or for some steps, with calls outermost around it."""
        watch = Observer(**calls)
        watch.name = WATCH
        limits = [limit for limit in (steps, self.steps) if limit is not None]
        return runner.insert_before(runner.items[0], watch).run(passes=self.passes, steps=min(limits, default=None))


def stop(script: Script, runner: Runner, cut: int) -> str:
    """Run some steps; return how to describe that."""
    script.run(runner, steps=cut)
    return f"stopped after step {cut}"


def kill(script: Script, runner: Runner, cut: int) -> str:
    """Run until after a step, and leave the run at once; return how to describe that."""

    def leave(state: State) -> None:
        if state.step == cut:
            raise _Killed

    try:
        script.run(runner, on_batch_end=leave)
    except _Killed:
        for saver in runner.all(Saver):
            saver.wait()  # its thread outlives the run here, which in a process that is killed it does not
        saved = max((step for saver in runner.all(Saver) for step in checkpoints(saver)), default=None)
        return f"killed after step {cut} and {'restarted' if saved is None else f'resumed from step {saved}'}"
    raise AssertionError(f"the run ended before step {cut}, where it was to be killed; the first runs did not.")


# -- the run that is not interrupted -----------------------------------------------------------------------------------

Moment: TypeAlias = tuple[int, int]
"""A batch: ``pass_id`` and ``batch_id`` on the way into it."""


@attrs.frozen
class Whole:
    """The uninterrupted run.

    Attributes:
        held: the attributes of the items before every batch.
        hidden: the state of their networks and optimizers then that no checkpoint contains.
        ended: the result.
        ends: the last step of each pass.
        moved: the parameters that it changes.
        times: where it differs from a second uninterrupted run.
    """

    held: dict[Moment, Held]
    hidden: dict[Moment, Held]
    ended: Held
    ends: list[int]
    moved: set[tuple[str, str, str]]
    times: set[tuple[str, Place]] = attrs.field(factory=set)

    @classmethod
    def of(cls, script: Script) -> Whole:
        """Run it twice.

        Raises:
            AssertionError: their results differ.
        """
        one, other = (cls._once(script, name) for name in ("whole", "whole-again"))
        _require_same_results(one, other)
        pairs = [(one.ended, other.ended)]
        pairs += [(held, other.held.get(moment, {})) for moment, held in one.held.items()]
        pairs += [(held, other.hidden.get(moment, {})) for moment, held in one.hidden.items()]
        times = {(owner, difference.path) for pair in pairs for owner, difference in compared(*pair)}
        return attrs.evolve(one, times=times)

    @classmethod
    def _once(cls, script: Script, name: str) -> Whole:
        (script.folder / name).mkdir(parents=True)
        runner = script.begin(name)
        held: dict[Moment, Held] = {}
        unsaved: dict[Moment, Held] = {}
        ends: dict[int, int] = {}
        before = snapshot(parameters(runner))

        def look(state: State) -> None:
            held[state.pass_id, state.batch_id] = attributes(runner)
            unsaved[state.pass_id, state.batch_id] = hidden(all_items(runner))

        def note(state: State) -> None:
            ends[state.pass_id] = state.step

        state = script.run(runner, on_batch_begin=look, on_batch_end=note)
        ended = outcome(runner, state, script.folder / name)
        after = snapshot(parameters(runner))
        return cls(held, unsaved, ended, list(ends.values()), {key for key in before if before[key] != after[key]})

    def require_cut(self, cut: int) -> None:
        """Raise OnionError for a step after which nothing is left to run."""
        if not 0 < cut < self.ends[-1]:
            raise OnionError(f"cuts has {cut}; the run has {self.ends[-1]} steps, and is cut between two of them.")

    def lacks(self, found: Iterable[Found]) -> list[Found]:
        """Return the differences that are not times."""
        return [(owner, each) for owner, each in found if not any((owner, part) in self.times for part in _parts(each))]


def _parts(difference: Difference) -> Iterator[Place]:
    """Yield the path of a difference and those of everything that contains it."""
    for length in range(len(difference.path) + 1):
        yield difference.path[:length]


def _require_same_results(one: Whole, other: Whole) -> None:
    """Raise AssertionError if two uninterrupted runs differ in more than times."""
    results = [
        (owner, each)
        for owner, each in compared(one.ended, other.ended)
        if owner == RUN or owner.startswith("the ") or isinstance(each.one, Bits)
    ]
    if results:
        early = (list(compared(held, other.held.get(moment, {}))) for moment, held in one.held.items())
        raise AssertionError(not_deterministic(results[0], next(filter(None, early), [])))
