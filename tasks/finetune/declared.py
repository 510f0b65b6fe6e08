"""How a setting is declared: once, for the config file, the flag, its help and the reference in the docs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from onion.validation import Check

GROUPS = ("data", "model", "optimization", "testing and checkpoints", "monitoring")
"""The headings of ``onion train --help``, in order."""


@attrs.frozen
class Declared:
    """What is known of a setting besides its name and its default.

    Attributes:
        group: one of GROUPS.
        help: one line, without the default.
        check: the values that it takes.
        default: how the help names the default where that is None or the task's.
        metavar: what the help calls the value. Default: that of argparse.
        many: whether the flag may be repeated; the setting is a list of texts then.
    """

    group: str
    help: str
    check: Check
    default: str | None = None
    metavar: str | None = None
    many: bool = False

    def shown(self, default: Any) -> str | None:
        """Return how a default is shown; None: there is none."""
        if default is attrs.NOTHING or default in (None, (), {}):
            return self.default
        return ",".join(default) if isinstance(default, tuple) else str(default)


def setting(
    group: str,
    help: str,
    check: Check,
    default: Any = attrs.NOTHING,
    *,
    told: str | None = None,
    metavar: str | None = None,
    convert: Callable[[Any], Any] | None = None,
    many: bool = False,
) -> Any:
    """Return the attrs field of a setting.

    Args:
        group: one of GROUPS.
        help: one line, without the default.
        check: the values that it takes; None too, where it is the default.
        default: its default; without one it is required.
        told: how the help names a default of None.
        metavar: what the help calls the value.
        convert: applied before the check.
        many: whether it is a list of texts, and the flag may be repeated.
    """
    return attrs.field(
        default=default,
        validator=attrs.validators.optional(check) if default is None else check,
        converter=convert,
        metadata={"declared": Declared(group, help, check, told, metavar, many)},
    )


def declared_in(settings: type) -> dict[str, tuple[Declared, Any]]:
    """Return the settings of a class that are declared here: name -> (declaration, default).

    Its own come first, then those of its base classes, from the special to the general.
    """
    generations = [vars(kind).get("__annotations__", {}) for kind in settings.__mro__]
    fields = sorted(
        (field for field in attrs.fields(settings) if "declared" in field.metadata),
        key=lambda field: next(number for number, own in enumerate(generations) if field.name in own),
    )
    return {field.name: (field.metadata["declared"], _made(field.default)) for field in fields}


def _made(default: Any) -> Any:
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
