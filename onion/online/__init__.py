"""Online learning: data that arrive while training runs, and a hand on the loop over the network.

    from onion.online import Control, Record, Spool, StreamProvider

    Runner(Saver("run"), Record(), StreamProvider(Spool("samples.db"), pass_every=10_000), Control(), ...).run()

Extras: ``[online]`` for Control, ``[redis]`` for RedisStream and RedisWriter, ``[drift]`` for DriftWatch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onion.online.control import Control
    from onion.online.delayed_labels import DelayedLabels
    from onion.online.drift_watch import DriftWatch
    from onion.online.progressive_test import ProgressiveTest
    from onion.online.publish import Publish
    from onion.online.raised_rate import RaisedRate
    from onion.online.record import Record
    from onion.online.replay_buffer import ReplayBuffer
    from onion.online.sources import Folder, RedisStream, RedisWriter, Spool, SpoolWriter
    from onion.online.stream_provider import StreamProvider
    from onion.online.switch import Switch

ROOMS = {
    "Control": "control",
    "DelayedLabels": "delayed_labels",
    "DriftWatch": "drift_watch",
    "Folder": "sources",
    "ProgressiveTest": "progressive_test",
    "Publish": "publish",
    "RaisedRate": "raised_rate",
    "Record": "record",
    "RedisStream": "sources",
    "RedisWriter": "sources",
    "ReplayBuffer": "replay_buffer",
    "Spool": "sources",
    "SpoolWriter": "sources",
    "StreamProvider": "stream_provider",
    "Switch": "switch",
}
"""In which module each name stands; it is loaded with the first use."""

__all__ = [
    "Control",
    "DelayedLabels",
    "DriftWatch",
    "Folder",
    "ProgressiveTest",
    "Publish",
    "RaisedRate",
    "Record",
    "RedisStream",
    "RedisWriter",
    "ReplayBuffer",
    "Spool",
    "SpoolWriter",
    "StreamProvider",
    "Switch",
]


def __getattr__(name: str) -> Any:
    if name not in ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{ROOMS[name]}"), name)
