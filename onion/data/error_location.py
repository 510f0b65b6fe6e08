"""Where in the data an error came up."""

from __future__ import annotations

from onion.errors import DataError


def say_where(error: BaseException, place: str) -> None:
    """Let an error say where it came up; its type and its traceback stay.

    A `DataError` is told by its message alone, so it gets the place there, in front. Any other gets a note (PEP 678),
    which Python shows from 3.11 on; before that it waits in ``__notes__`` all the same.
    """
    if isinstance(error, DataError):
        what, *more = error.args or ("",)
        error.args = (f"{place}: {what}", *more)
    else:
        vars(error).setdefault("__notes__", []).append(place)
