"""The errors of onion: each says what was wrong, where, and what to do.

The command line prints them as one or two plain lines and leaves with status 2; everything else is a defect of ours and
keeps its traceback.
"""

from __future__ import annotations


class OnionError(Exception):
    """Base of every error that is written for the person at the keyboard."""


class CompositionError(OnionError):
    """The onion cannot work as it is composed; raised when it is built, with its drawing."""


class HookError(OnionError):
    """A hook broke the contract of the ring (yielded twice, not at all, or returned something)."""


class DataError(OnionError):
    """An input file or data source is not what it should be; the message names file and line."""


class CheckpointError(OnionError):
    """A checkpoint cannot be written or read; the older ones are untouched."""


class WeightsError(OnionError):
    """Weights, their config or their vocabulary are missing, damaged or do not fit."""
