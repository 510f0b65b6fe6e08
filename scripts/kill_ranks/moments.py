"""The moments at which a rank is killed."""

from __future__ import annotations

import os
import random
import signal
from time import monotonic, sleep

import attrs

from onion.checkpointing.atomic_files import PARTIAL
from scripts.kill_ranks.training import PATIENCE, Training

JOINED = "Successfully connected to"
"""What Paddle prints in each rank that joins; to compare, to load and to hand out parameters come next."""


def at_any_time(training: Training, chance: random.Random, seconds: float) -> None:
    """Wait for any moment after the ranks were started; ``seconds``: what the whole training takes."""
    _wait_for_ranks(training)
    training.wait(chance.uniform(0, 0.9) * seconds)


def at_the_start(training: Training, chance: random.Random, seconds: float) -> None:
    """Wait until there are processes, and then for a moment of the time in which they import and connect."""
    _wait_for_ranks(training)
    training.wait(chance.uniform(0, 0.4) * seconds)


def _wait_for_ranks(training: Training) -> None:
    while not training.ranks() and not training.over():
        sleep(0.02)


def while_loading(training: Training, chance: random.Random, seconds: float) -> None:
    """Wait until ranks join, and then for a moment of the time in which they compare onions and load a checkpoint."""
    before = training.printed().count(JOINED)
    while training.printed().count(JOINED) == before and not training.over():
        sleep(0.01)
    training.wait(chance.uniform(0, 0.1) * seconds)


def while_saving(training: Training, chance: random.Random, seconds: float) -> None:
    """Wait for the folder of a checkpoint that is being written, one of the next few."""
    for _ in range(chance.randint(1, 4)):
        while _is_saving(training) and not training.over():
            pass
        while not _is_saving(training) and not training.over():
            sleep(0.0002)


def _is_saving(training: Training) -> bool:
    try:
        with os.scandir(training.saves) as entries:
            return any(entry.name.endswith(PARTIAL) for entry in entries)
    except FileNotFoundError:
        return False


MOMENTS = {"any": at_any_time, "start": at_the_start, "load": while_loading, "save": while_saving}
ALONE = ("any", "save")
"""Those of a single process, which joins nobody."""

SIGNALS = {signal.SIGKILL: 12, signal.SIGTERM: 1, signal.SIGABRT: 1, signal.SIGSEGV: 1}
"""Signals, and how often each is drawn: kills, notices, and what a crash in native code looks like."""


@attrs.frozen
class Hit:
    """A signal that a rank, or all ranks of a machine, have received.

    Attributes:
        where: processes:rank@moment.
        sent: the signal.
        seconds: until all ranks of that time had ended.
    """

    where: str
    sent: signal.Signals
    seconds: float

    def __str__(self) -> str:
        return self.where + ("" if self.sent == signal.SIGKILL else f" {self.sent.name}")


def hit(training: Training, chance: random.Random, seconds: float) -> Hit | None:
    """Wait for a moment, and send a signal to a rank, after which all others have to end too.

    Returns:
        None: the training was over before.

    Raises:
        TimeoutError: some rank did not end.
    """
    moment = chance.choice(list(MOMENTS) if training.launched else ALONE)
    sent = chance.choices(list(SIGNALS), [*SIGNALS.values()])[0]
    MOMENTS[moment](training, chance, seconds)
    ranks = training.ranks()
    if not ranks:
        return None
    # Rank 0, which reads and writes the checkpoints, as often as all others.
    victim = 0 if 0 in ranks and chance.random() < 0.5 else chance.choice(list(ranks))
    try:
        os.kill(ranks[victim], sent)
    except ProcessLookupError:
        return None
    return _seen_off(training, ranks, f"{len(ranks)}:{victim}@{moment}", sent)


def fail_machine(training: Training, chance: random.Random, seconds: float) -> Hit | None:
    """Wait for a moment, and kill a launcher with all its ranks; see ``hit``."""
    moment = chance.choice(list(MOMENTS))
    MOMENTS[moment](training, chance, seconds)
    ranks = training.ranks()
    machine = chance.choice(list(training.launchers))
    if not training.kill_machine(machine):
        return None
    return _seen_off(training, ranks, f"{len(ranks)}:machine@{moment}", signal.SIGKILL)


def _seen_off(training: Training, ranks: dict[int, int], where: str, sent: signal.Signals) -> Hit:
    """Wait until these ranks have ended."""
    begun = monotonic()
    while left := [rank for rank, process in ranks.items() if training.is_there(process)]:
        if monotonic() - begun > PATIENCE:
            raise TimeoutError(f"ranks {left} are there {PATIENCE} seconds after {where}; see {training.out}")
        sleep(0.02)
    return Hit(where, sent, monotonic() - begun)
