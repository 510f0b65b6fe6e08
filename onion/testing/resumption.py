"""The proof that nothing of a run is lost when it is cut or killed."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from onion.checkpointing import rng
from onion.engine.runner import Runner
from onion.engine.state import State
from onion.items.saver import Saver
from onion.testing.capture import Held, attributes, checkpoints, compared, everyone, outcome, parameters
from onion.testing.hidden_state import hidden
from onion.testing.reference_run import Moment, Whole
from onion.testing.report import ended_otherwise, not_saved
from onion.testing.restart import Script, kill, stop

MANY = 8
"""So many cuts are tried where none are given, at most."""

OTHER_SEED = 20161


def assert_resumes_exactly(
    make: Callable[[Path], Runner],
    folder: str | Path,
    *,
    passes: int | None = None,
    steps: int | None = None,
    cuts: Iterable[int] | None = None,
) -> None:
    """Assert that a run which is cut or killed, and begun again, comes to the same bits as one that is not.

        def my_onion(folder):
            paddle.seed(1)
            network = toy_network()
            optimizer = paddle.optimizer.SGD(0.1, parameters=network.parameters())
            data = DataProvider(toy_examples(32), 8, shuffle=True)
            return Runner(Saver(folder, every=3), MyItem(), data, ParameterUpdater(optimizer), GradientMachine(network))

        def test_a_run_with_my_item_resumes_exactly(tmp_path):
            assert_resumes_exactly(my_onion, tmp_path, passes=2)

    The run is made whole, twice, in two folders. Then, for each cut and in a folder of its own, it is once stopped
    after that step, as ``run(steps=cut)`` does, and once killed on the way out of that batch, so that it goes on from
    an older checkpoint or, where there is none, begins anew. Then ``make`` is called again, the random generators of
    Python, numpy and Paddle are seeded otherwise, every parameter that the run moves is overwritten, and it is run to
    its end.

    Before its first batch every item's attributes are held against those of the run that was not cut: numbers, texts,
    arrays, tensors and networks, random generators, lists, dicts and sets of them, and objects that hold them. At the
    end it is the states of all items, generators, counters, loss, metrics, logs (every ``*.jsonl`` in the folder, but
    for "seconds") and the steps of the checkpoints. Attributes and saved scalars in which the two whole runs differ are
    taken for times, and passed over; an item names others that may differ in ``transient``. Where the end differs
    though all attributes were the same, what networks and optimizers held that no checkpoint has is compared too:
    attributes of layers, buffers that are not persistable, attributes of an optimizer's subclass.

    Args:
        make: builds the onion, which has a Saver whose folder is ``make``'s argument or stands in it. It seeds what it
            wants, as a script does at its top.
        folder: where the runs write; folders of theirs are made in it.
        passes: of the whole run, as for ``Runner.run``. Default: no limit, as where an item ends the run.
        steps: of the whole run, likewise.
        cuts: steps after which the run is cut. Default: every one of up to 8, else 8 spread over the run: the first,
            the last but one, and both sides of the end of a pass among them.

    Raises:
        AssertionError: a resumed run differs: the message tells the cut, the item, its attribute or key, both values;
            or two runs that were not cut differ in their results.
        OnionError: there is nothing to cut: the onion has no Saver in that folder, a cut is no step before the last.
        FileExistsError: this was done in that folder before.
    """
    before = rng.capture()
    try:
        script = Script(make, Path(folder), passes, steps)
        whole = Whole.of(script)
        for cut in _chosen(whole.ends) if cuts is None else cuts:
            whole.refuse_no_cut(cut)
            for end in (stop, kill):
                _check(script, whole, cut, end)
    finally:
        rng.restore(before)


def _chosen(ends: list[int]) -> list[int]:
    """Return the steps to cut after: all, or the telling ones and some between."""
    last = ends[-1] - 1
    if last <= MANY:
        return list(range(1, last + 1))
    telling = {1, last, *(step for step in (ends[0], ends[0] + 1) if step <= last)}
    rest = [step for step in range(1, last + 1) if step not in telling]
    spread = MANY - len(telling)
    return sorted(telling.union(rest[len(rest) * place // spread] for place in range(spread)))


def _check(script: Script, whole: Whole, cut: int, end: Callable[[Script, Runner, int], str]) -> None:
    """Cut a run, go on with it, and compare."""
    name = f"{end.__name__}-{cut}"
    (script.folder / name).mkdir(parents=True)
    how = end(script, script.begin(name), cut)
    runner = script.begin(name)
    resumed = any(checkpoints(saver) for saver in runner.all(Saver))
    if resumed:
        _estrange(runner, whole.moved)
    first: dict[Moment, Held] = {}
    unseen: dict[Moment, Held] = {}

    def look(state: State) -> None:
        if not first:
            first[state.pass_id, state.batch_id] = attributes(runner)
            unseen[state.pass_id, state.batch_id] = hidden(everyone(runner))

    try:
        state = script.run(runner, on_batch_begin=look)
    except Exception as error:
        raise AssertionError(f"{how}: the resumed run failed, with {error!r}") from error
    for moment, held in first.items():
        if found := whole.lacks(compared(whole.held.get(moment, held), held)):
            raise AssertionError(not_saved(how, found, everyone(runner)))
    ended = outcome(runner, state, script.folder / name)
    if not resumed:  # a Logger moves the rows aside that belong to no checkpoint
        ended = {owner: held for owner, held in ended.items() if owner in whole.ended}
    found = whole.lacks(compared(whole.ended, ended))
    if end is stop:  # which has saved once more than the run that was not cut, and so pushed an older one out
        found = [(owner, each) for owner, each in found if each.path[:1] != (".checkpoints",)]
    if found:
        lost = [
            each
            for moment, held in unseen.items()
            for each in whole.lacks(compared(whole.hidden.get(moment, held), held))
        ]
        raise AssertionError(ended_otherwise(how, found, next(iter(first.values()), {}), lost))


def _estrange(runner: Runner, moved: set[tuple[str, str, str]]) -> None:
    """Seed all generators otherwise and overwrite what the run moves, so that all has to come from the checkpoint."""
    random.seed(OTHER_SEED)
    np.random.seed(OTHER_SEED)
    paddle = sys.modules.get("paddle")
    if paddle is not None:
        paddle.seed(OTHER_SEED)
        for key, parameter in parameters(runner).items():
            if key in moved:
                parameter.set_value(paddle.rand(parameter.shape).astype(parameter.dtype))
