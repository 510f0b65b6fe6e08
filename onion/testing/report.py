"""The messages about a run that did not resume exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onion.engine.item import RunnerItem, overrides
from onion.testing.capture import Found, Held
from onion.testing.snapshot import Bits, opaque, written

MANY = 5
"""Further differences that are named at most."""

UNCUT, RESUMED = "in the uninterrupted run", "in the resumed run"


def not_deterministic(result: Found, early: Sequence[Found]) -> str:
    """Describe how two uninterrupted runs differ.

    Args:
        result: the first difference of their results.
        early: the differences of the items' attributes, before the first batch that had any.
    """
    telling = [found for found in early if not isinstance(found[1].one, Bits)] or early[:1]
    first = "".join(
        f"\nFirst difference: {_shown(found, 'in one', 'in the other', 'attribute ')}." for found in telling
    )
    return (
        "two uninterrupted runs differ, so none can be resumed exactly: "
        f"{_shown(result, 'in one', 'in the other')}; make must seed all random generators, and nothing may depend on "
        f"the time.{first}"
    )


def not_saved(how: str, found: Sequence[Found], items: Mapping[str, RunnerItem]) -> str:
    """Describe which attributes a resumed run lacks before its first batch.

    Args:
        how: how the run was interrupted.
        found: the differences.
        items: by the owners in ``found``.
    """
    advice = _advice(items.get(found[0][0], RunnerItem()))
    return f"{how}: {_shown(found[0], UNCUT, RESUMED, 'attribute ')}; {advice}.{_others(found[1:])}"


def ended_otherwise(how: str, found: Sequence[Found], held: Held, lost: Sequence[Found]) -> str:
    """Describe how the result of a resumed run differs, though its items lacked no attribute.

    Args:
        how: how the run was interrupted.
        found: the differences.
        held: the items' attributes before the first batch.
        lost: the differences at that moment in state of networks and optimizers that no checkpoint contains.
    """
    if lost:
        return (
            f"{how}: {_shown(found[0], UNCUT, RESUMED)}; before its first batch it lacked state that no checkpoint "
            f"contains: {_shown(lost[0], UNCUT, RESUMED, 'attribute ')}; in a layer, make it a buffer "
            "(register_buffer, persistable=True), or keep it in an item that saves it (state_dict, load_state_dict), "
            f"or name it in the class's transient if it does not matter.{_others(lost[1:])}"
        )
    iterators = [f"{owner}: {written(path)}" for owner, each in held.items() for path in opaque(each)]
    perhaps = f"one of these iterators ({', '.join(iterators)}), " if iterators else ""
    return (
        f"{how}: {_shown(found[0], UNCUT, RESUMED)}, though before its first batch all attributes were equal; look "
        f"for state that is in no attribute: {perhaps}a closure, a global, or something that is done again when a run "
        f"starts.{_others(found[1:])}"
    )


def _advice(item: RunnerItem) -> str:
    if not overrides(item, "state_dict"):
        what = "return it from state_dict and restore it in load_state_dict"
    elif not overrides(item, "load_state_dict"):
        what = "restore in load_state_dict what state_dict returns"
    else:
        what = "return it from state_dict, restore it in load_state_dict, and set it in reset and not in initialize"
    return f"{what}, or name it in transient if it does not matter"


def _shown(found: Found, here: str, there: str, what: str = "") -> str:
    owner, difference = found
    one, other = difference.shown()
    where = f"{what}{written(difference.path)!r} " if difference.path else ""
    return f"{owner}: {where}is {one} {here} and {other} {there}"


def _others(found: Sequence[Found]) -> str:
    named = ", ".join(f"{owner}: {written(each.path)}" for owner, each in found[:MANY])
    more = f" and {len(found) - MANY} more" if len(found) > MANY else ""
    return f"\nAlso different: {named}{more}." if found else ""
