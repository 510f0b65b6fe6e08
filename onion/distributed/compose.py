"""A runner for one process, made into one for several."""

from __future__ import annotations

from typing import Any

from onion.distributed.data_parallel import DataParallel
from onion.distributed.process_group import ProcessGroup
from onion.engine.runner import Runner
from onion.items.accumulate import Accumulate
from onion.items.mixed_precision import MixedPrecision
from onion.items.nan_guard import NanGuard
from onion.items.parameter_updater import ParameterUpdater

DECIDING = (MixedPrecision, NanGuard, Accumulate)
"""Items inside an updater that decide about the update of the whole batch, and so go around a DataParallel."""


def distributed(runner: Runner, pieces: int | None = None, exact: bool = False, seed: int = 0, **group: Any) -> Runner:
    """Return the same runner with a ProcessGroup outermost and a DataParallel in each ParameterUpdater.

        runner = Runner(Saver("run"), DataProvider(data, 64), ParameterUpdater(optimizer), GradientMachine(network))
        distributed(runner, pieces=8, exact=True).run(passes=3)

    Args:
        runner: the runner; its items are shared. If it has a ProcessGroup and DataParallels, new ones replace them.
        pieces: into how many pieces a batch is cut. Default: one a rank.
        exact: see DataParallel. Default False.
        seed: see DataParallel. Default 0.
        group: other arguments of ProcessGroup.

    Raises:
        CompositionError: it cannot be run by several processes; see ProcessGroup and DataParallel.
    """
    for item in (*runner.all(ProcessGroup), *runner.all(DataParallel)):
        runner = runner.without(item)
    for updater in runner.all(ParameterUpdater):
        deciding = [item for item in runner.inside(updater) if isinstance(item, DECIDING)]
        runner = runner.insert_after([updater, *deciding][-1], DataParallel(exact, seed))
    return runner.with_items((ProcessGroup(pieces, **group), *runner.items))
