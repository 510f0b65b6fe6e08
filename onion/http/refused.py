"""A request that cannot be carried out."""

from __future__ import annotations


class Refused(Exception):  # noqa: N818  the caller's mistake, not an error of the program
    """The request cannot be carried out; nothing was changed or recorded.

    Args:
        reason: For the caller.
        status: Of the HTTP answer. Default 400.
    """

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status
