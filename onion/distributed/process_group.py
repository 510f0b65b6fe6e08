"""The outermost item of an onion that several processes run together."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from onion.device import paddle
from onion.distributed.channel import Channel, Message
from onion.distributed.group import Group, joined
from onion.distributed.sharding import refuse_unshared
from onion.engine.identity import differences, identity_of
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError, RankError
from onion.host import launch
from onion.items.signals import Signals
from onion.training.pairing import around
from onion.validation import is_number, is_whole

if TYPE_CHECKING:
    from onion.engine.runner import Runner

log = logging.getLogger("onion")

TIMEOUT = 1800.0
"""Seconds to wait for the slowest rank, as long as torch waits for a collective of gloo."""


class ProcessGroup(RunnerItem):
    """Run the onion in all processes that a launcher has started, as one training; the outermost item.

        Runner(ProcessGroup(), Saver("run"), DataProvider(data, 64), ParameterUpdater(optimizer), DataParallel(),
               GradientMachine(network)).run(passes=3)

        python -m paddle.distributed.launch --nproc_per_node 4 train.py

    ``batch_size`` is that of the whole batch: it is cut into pieces, and each rank reads and computes its own. On the
    way into the run the ranks compare what their onions are made of, and take the parameters of rank 0. Before each
    batch they agree on whether to go on: what stops one (a signal, an early stop, data that fail) stops all, after the
    same batch. A Saver writes on rank 0 and resumes all ranks, also in another number of processes; a Tester's
    Evaluator sees the outputs of all ranks; items that only watch run on rank 0. In one process it does nothing.

    Args:
        pieces: into how many pieces a batch is cut, a multiple of the number of ranks. Default: one a rank. With
            ``DataParallel(exact=True)`` runs of the same number of pieces have the same bits, whatever their ranks.
        timeout: seconds to wait for the slowest rank before the run ends and names it. Default 1800.
        shard_optimizer: let each rank keep the state of each optimizer (such as Adam's moments) for its share of the
            parameters only, with the same bits and the same checkpoints; after each update the ranks exchange the
            parameters. Default False.

    Raises:
        CompositionError: it is not outermost; a gradient machine has no DataParallel around it; an item cannot be run
            by several processes, with the reason; an argument is out of range, or the pieces cannot be shared evenly;
            or, with ``shard_optimizer``, an optimizer is none of ``paddle.optimizer``.
        RankError: in the run: another rank has another onion, has failed, is gone or out of step; it is named.
    """

    passive = joins_group = True
    keep_for_inference = False

    def __init__(self, pieces: int | None = None, timeout: float = TIMEOUT, shard_optimizer: bool = False) -> None:
        if pieces is not None and not (is_whole(pieces) and pieces >= 1):
            raise CompositionError(f"ProcessGroup: pieces must be an integer >= 1, got {pieces!r}.")
        if not (is_number(timeout) and timeout > 0):
            raise CompositionError(f"ProcessGroup: timeout must be a number of seconds > 0, got {timeout!r}.")
        world_size = launch.world_size()
        if pieces is not None and pieces % world_size:
            raise CompositionError(
                f"ProcessGroup: {pieces} pieces cannot be shared evenly by {world_size} processes; start "
                f"{_divisor(pieces, world_size)} of them, or cut into {world_size * -(-pieces // world_size)} pieces."
            )
        self.pieces, self.timeout, self.shard_optimizer = pieces or world_size, timeout, shard_optimizer

    def check(self, runner: Runner) -> None:
        """Require the outermost place, a DataParallel around each machine, and items that can be run together."""
        if outside := around(self, runner):
            raise CompositionError(f"{self.name} is inside {outside[0].name}; move it out, to the very beginning.")
        from onion.distributed.data_parallel import DataParallel

        for each in _runners(runner):
            for item in each.walk():
                if item.computes_gradients and not any(isinstance(one, DataParallel) for one in around(item, each)):
                    raise CompositionError(
                        f"{item.name} has no DataParallel around it, so its gradients would be those of this process "
                        "alone; put one between the ParameterUpdater and it."
                    )
                _refuse_change_on_first_rank(item)
                if self.shard_optimizer and item.optimizer is not None:
                    refuse_unshared(item)
                if item.alone_because and self.pieces > 1:
                    raise CompositionError(f"{item.name} cannot be run by several processes: {item.alone_because}.")

    def initialize(self, state: State) -> HookIterator:
        """Join the ranks, and leave with them."""
        if self.pieces == 1 or state.parent is not None:
            yield
            return
        assert state.runner is not None
        channel = _channel(self.timeout) if launch.world_size() > 1 else None
        group = Group(launch.rank(), launch.world_size(), self.pieces, channel, self.shard_optimizer)
        with joined(list(_with_inner_runs(state.runner)), group), _ended_together(group, state):
            _compare(group, state.runner)
            _take_parameters_of_first(group, state.runner)
            yield


CHANGING = (
    "provides_data", "alters_batches", "mixes_batches", "computes_gradients", "moves_weights", "runs_again",
    "splits_update", "frozen", "optimizer",
)  # fmt: skip
"""Attributes of items that change a run, where they are true."""


def _refuse_change_on_first_rank(item: RunnerItem) -> None:
    """Refuse an item that the first rank alone runs, if it does more than watch: the others would go on without."""
    changes = [name for name in CHANGING if getattr(item, name)]
    if item.first_rank_only and (changes or not item.passive):
        why = f"has {changes[0]}" if changes else "is not passive"
        raise CompositionError(
            f"{item.name} is run by the first process only (first_rank_only), and {why}, so the others would train "
            "something else; an item that only watches is passive, any other is run by all: leave out first_rank_only."
        )


_open: list[Channel] = []
"""The connections of this process, which later runs use again."""


def _channel(timeout: float) -> Channel:
    """Return the connections between all ranks, made at the first run."""
    if not _open:
        _open.append(Channel.open(timeout))
    distributed = paddle().distributed
    if not distributed.is_initialized():
        if paddle().device.get_device() == "cpu":
            os.environ.setdefault("PADDLE_DISTRI_BACKEND", "gloo")  # Paddle does not find that out by itself
        distributed.init_parallel_env()
    _open[0].timeout = timeout
    return _open[0]


@contextmanager
def first_rank_first(timeout: float = TIMEOUT) -> Iterator[None]:
    """Let rank 0 do the inside before the others, which find what it has left in a cache.

    Args:
        timeout: seconds to wait for it. Default 1800.

    Raises:
        RankError: rank 0 has failed there.
    """
    channel = _channel(timeout) if launch.world_size() > 1 else None
    if channel is not None and channel.rank > 0:
        channel.exchange({"at": {"place": "rank 0 first"}})
    try:
        yield
    except BaseException as error:
        if channel is not None:
            channel.fail(f"{type(error).__name__}: {error}")
        raise
    if channel is not None and channel.rank == 0:
        channel.exchange({"at": {"place": "rank 0 first"}})


@contextmanager
def _ended_together(group: Group, state: State) -> Iterator[None]:
    """Leave when all ranks do; tell them why, if an error is the reason."""
    code: int | None = None
    try:
        yield
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException as error:
        if error is group.agreed:
            group.exchange({"at": {"place": "the end"}})  # rank 0 may still be saving
        elif group.channel is not None and not isinstance(error, RankError):
            group.channel.fail(f"step {state.step}: {type(error).__name__}: {error}")
        raise
    codes = _left_together(group, state, code)
    if code is not None or codes:
        raise SystemExit([*codes, code][0])


def _left_together(group: Group, state: State, code: int | None) -> list[int]:
    """Wait until all ranks have left the run; share the signal that ended it. Return the exit codes of all."""
    group.leave(state, partial(_last_words, group))
    signals = state.runner.all(Signals) if state.runner is not None else ()
    received = next((each.received for each in signals if each.received is not None), None)
    told = _last_words(group, {"at": {"place": "the end"}, "code": code, "signal": received})
    for each in signals:
        each.received = next((other["signal"] for other in told if other.get("signal") is not None), None)
    return [each["code"] for each in told if each.get("code") is not None]


def _last_words(group: Group, message: Message) -> list[Message]:
    """Tell all ranks something at the end; rank 0 has saved everything, and does without those who are gone by now."""
    try:
        told = None if group.channel is None else group.channel.exchange(message)
    except RankError as error:
        if group.rank > 0:
            raise
        log.warning("%s; the run of this rank was over", error)
        return [message]
    return told or [message] * group.world_size


def _compare(group: Group, runner: Runner) -> None:
    """Refuse ranks whose onions are made of other things than that of rank 0."""
    told = group.everyone({"at": {"place": "the start of the run"}, "onion": identity_of(runner)})
    for rank, each in enumerate(told):
        other = differences(told[0]["onion"], each["onion"])
        if other:
            words = "; ".join(text for texts in other.values() for text in texts)
            raise RankError(
                f"rank {rank} has another onion than rank 0: {words}. Start all ranks with the same settings."
            )


def _take_parameters_of_first(group: Group, runner: Runner) -> None:
    """Give all networks the parameters and buffers that they have on rank 0."""
    networks = {id(item.network): item.network for item in _with_inner_runs(runner) if item.network is not None}
    for network in networks.values():
        tensors = network.state_dict()
        if group.channel is None:
            continue
        for name, array in group.from_first({name: each.numpy() for name, each in tensors.items()}).items():
            if group.rank > 0:
                tensors[name].set_value(array)


def _with_inner_runs(runner: Runner) -> list[RunnerItem]:
    """Return the items of a runner and of those that its items run."""
    return [item for each in _runners(runner) for item in (each, *each.walk())]


def _runners(runner: Runner) -> Iterator[Runner]:
    """Give a runner and those that its items run within it, such as a Tester's."""
    yield runner
    for item in runner.walk():
        for value in () if item.is_runner else vars(item).values():
            if isinstance(value, RunnerItem) and value.is_runner and value is not runner:
                yield from _runners(value)  # type: ignore[arg-type]


def _divisor(pieces: int, world_size: int) -> int:
    """Return the largest number of processes, below this one, that shares the pieces evenly."""
    return next(count for count in range(min(pieces, world_size), 0, -1) if pieces % count == 0)
