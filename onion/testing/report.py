"""What is said where a run did not resume exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onion.engine.item import RunnerItem, overrides
from onion.testing.capture import Found, Held
from onion.testing.snapshot import Bits, opaque, written

MANY = 5
"""So many further differences are named."""

UNCUT, RESUMED = "in the run that was not cut", "in the resumed one"


def not_deterministic(result: Found, early: Sequence[Found]) -> str:
    """Say how two whole runs differ.

    Args:
        result: the first difference of what they came to.
        early: the differences of what the items held, before the first batch that had any.
    """
    telling = [found for found in early if not isinstance(found[1].one, Bits)] or early[:1]
    first = "".join(
        f"\nThe first to differ: {_told(found, 'in one', 'in the other', 'attribute ')}." for found in telling
    )
    return (
        "two runs that were not cut differ, so none can be resumed exactly: "
        f"{_told(result, 'in one', 'in the other')}; let make seed all random generators, and draw nothing from the "
        f"clock.{first}"
    )


def not_saved(how: str, found: Sequence[Found], items: Mapping[str, RunnerItem]) -> str:
    """Say which attributes a resumed run lacks before its first batch.

    Args:
        how: how the run was cut.
        found: the differences.
        items: by the names that differences have.
    """
    advice = _advice(items.get(found[0][0], RunnerItem()))
    return f"{how}: {_told(found[0], UNCUT, RESUMED, 'attribute ')}; {advice}.{_others(found[1:])}"


def ended_otherwise(how: str, found: Sequence[Found], held: Held, lost: Sequence[Found]) -> str:
    """Say what a resumed run came to, though its items lacked no attribute.

    Args:
        how: how the run was cut.
        found: the differences.
        held: what the items held before the first batch.
        lost: what networks and optimizers held then that no checkpoint has, where it was another thing.
    """
    if lost:
        return (
            f"{how}: {_told(found[0], UNCUT, RESUMED)}; before its first batch it lacked what no checkpoint has: "
            f"{_told(lost[0], UNCUT, RESUMED, 'attribute ')}; of a layer, make it a buffer "
            "(register_buffer, persistable=True), or keep it in an item that saves it (state_dict, load_state_dict), "
            f"or name it in the class's unsaved if it is of no consequence.{_others(lost[1:])}"
        )
    iterators = [f"{owner}: {written(path)}" for owner, each in held.items() for path in opaque(each)]
    perhaps = f"one of these iterators ({', '.join(iterators)}), " if iterators else ""
    return (
        f"{how}: {_told(found[0], UNCUT, RESUMED)}, though before its first batch all attributes were the same; look "
        f"for state that none shows: {perhaps}a closure, a global, something done once more on the way in."
        f"{_others(found[1:])}"
    )


def _advice(item: RunnerItem) -> str:
    if not overrides(item, "state_dict"):
        what = "return it from state_dict and take it back in load_state_dict"
    elif not overrides(item, "load_state_dict"):
        what = "take back in load_state_dict what state_dict returns"
    else:
        what = "return it from state_dict, take it back in load_state_dict, and set it in reset and not in initialize"
    return f"{what}, or name it in unsaved if it is of no consequence"


def _told(found: Found, here: str, there: str, what: str = "") -> str:
    owner, difference = found
    one, other = difference.shown()
    where = f"{what}{written(difference.path)!r} " if difference.path else ""
    return f"{owner}: {where}is {one} {here} and {other} {there}"


def _others(found: Sequence[Found]) -> str:
    named = ", ".join(f"{owner}: {written(each.path)}" for owner, each in found[:MANY])
    more = f" and {len(found) - MANY} more" if len(found) > MANY else ""
    return f"\nAlso different: {named}{more}." if found else ""
