"""The errors of onion: each states what is wrong, where, and what to do.

The command line prints them as one or two lines and exits with status 2; any other error is a bug and keeps its
traceback.
"""

from __future__ import annotations


class OnionError(Exception):
    """Base class of all errors with a message for the user."""


class CompositionError(OnionError):
    """A runner cannot work as it is composed; raised when it is built, with its drawing."""


class HookError(OnionError):
    """A hook violated its contract: it yielded twice, not at all, or returned a value."""


class DataError(OnionError):
    """An input file or data source is invalid; the message names file and line."""


class CheckpointError(OnionError):
    """A checkpoint cannot be written or read; older ones are unchanged."""


class DivergedError(OnionError):
    """The loss of a training is not finite any more; the message tells the step."""


class RankError(OnionError):
    """Another process of the group has failed, is gone, or does something else; the message names its rank."""


class WeightsError(OnionError):
    """Weights, their config or their vocabulary are missing, damaged or do not match."""
