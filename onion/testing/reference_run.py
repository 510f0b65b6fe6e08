"""What a run is when it is not cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from onion.engine.state import State
from onion.errors import OnionError
from onion.testing.capture import RUN, Found, Held, attributes, compared, everyone, outcome, parameters
from onion.testing.hidden_state import hidden
from onion.testing.report import not_deterministic
from onion.testing.restart import Script
from onion.testing.snapshot import Bits, Difference, Path, snapshot

Moment: TypeAlias = tuple[int, int]
"""A batch: ``pass_id`` and ``batch_id`` on the way into it."""


@attrs.frozen
class Whole:
    """What the run is when it is not cut.

    Attributes:
        held: what the items held before every batch.
        hidden: what their networks and optimizers held then that no checkpoint has.
        ended: what it came to.
        ends: the last step of each pass.
        moved: which parameters it moves.
        times: where it differs from another one like it.
    """

    held: dict[Moment, Held]
    hidden: dict[Moment, Held]
    ended: Held
    ends: list[int]
    moved: set[tuple[str, str, str]]
    times: set[tuple[str, Path]] = attrs.field(factory=set)

    @classmethod
    def of(cls, script: Script) -> Whole:
        """Run it twice.

        Raises:
            AssertionError: they differ in their results.
        """
        one, other = (cls._once(script, name) for name in ("whole", "whole-again"))
        _refuse_other_results(one, other)
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
        unseen: dict[Moment, Held] = {}
        ends: dict[int, int] = {}
        before = snapshot(parameters(runner))

        def look(state: State) -> None:
            held[state.pass_id, state.batch_id] = attributes(runner)
            unseen[state.pass_id, state.batch_id] = hidden(everyone(runner))

        def note(state: State) -> None:
            ends[state.pass_id] = state.step

        state = script.run(runner, on_batch_begin=look, on_batch_end=note)
        ended = outcome(runner, state, script.folder / name)
        after = snapshot(parameters(runner))
        return cls(held, unseen, ended, list(ends.values()), {key for key in before if before[key] != after[key]})

    def refuse_no_cut(self, cut: int) -> None:
        """Raise OnionError for a step after which there is nothing to go on with."""
        if not 0 < cut < self.ends[-1]:
            raise OnionError(f"cuts has {cut}; the run has {self.ends[-1]} steps, and is cut between two of them.")

    def lacks(self, found: Iterable[Found]) -> list[Found]:
        """Return the differences that are no times."""
        return [(owner, each) for owner, each in found if not any((owner, part) in self.times for part in _parts(each))]


def _parts(difference: Difference) -> Iterator[Path]:
    """Give the way to a difference, and the way to everything that it is a part of."""
    for length in range(len(difference.path) + 1):
        yield difference.path[:length]


def _refuse_other_results(one: Whole, other: Whole) -> None:
    """Raise AssertionError if two whole runs differ in more than times."""
    results = [
        (owner, each)
        for owner, each in compared(one.ended, other.ended)
        if owner == RUN or owner.startswith("the ") or isinstance(each.one, Bits)
    ]
    if results:
        early = (list(compared(held, other.held.get(moment, {}))) for moment, held in one.held.items())
        raise AssertionError(not_deterministic(results[0], next(filter(None, early), [])))
