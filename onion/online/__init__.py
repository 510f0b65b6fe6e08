"""Online learning: data that arrive while training runs, and control of the running loop over the network.

    from onion.online import ControlServer, Journal, Spool, StreamProvider

    Runner(Saver("run"), Journal(), StreamProvider(Spool("samples.db"), pass_every=10_000), ControlServer(), ...).run()

``stream``: batches of samples as they arrive. ``sources``: where samples come from. ``journal``: what came from
outside, and how a run is replayed. ``control``: commands and status. ``http``: the service. ``learning``: validation,
drift, replayed samples, snapshots.

Extras: ``[online]`` for ControlServer, ``[redis]`` for RedisStream and RedisWriter, ``[drift]`` for DriftDetector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onion.lazy import lazily

if TYPE_CHECKING:
    from onion.online.control.control_server import ControlServer
    from onion.online.http import Limits
    from onion.online.journal.journal import Journal
    from onion.online.learning.delayed_labels import DelayedLabels
    from onion.online.learning.drift_detector import DriftDetector
    from onion.online.learning.learning_rate_boost import LearningRateBoost
    from onion.online.learning.progressive_validation import ProgressiveValidation
    from onion.online.learning.publish import Publish
    from onion.online.learning.replay_buffer import ReplayBuffer
    from onion.online.learning.switch import Switch
    from onion.online.sources.folder import Folder
    from onion.online.sources.redis_stream import RedisStream
    from onion.online.sources.redis_writer import RedisWriter
    from onion.online.sources.spool import Spool
    from onion.online.sources.spool_writer import SpoolWriter
    from onion.online.stream.stream_provider import StreamProvider

MODULES = {
    "ControlServer": "control.control_server",
    "DelayedLabels": "learning.delayed_labels",
    "DriftDetector": "learning.drift_detector",
    "Folder": "sources.folder",
    "Journal": "journal.journal",
    "LearningRateBoost": "learning.learning_rate_boost",
    "Limits": "http",
    "ProgressiveValidation": "learning.progressive_validation",
    "Publish": "learning.publish",
    "RedisStream": "sources.redis_stream",
    "RedisWriter": "sources.redis_writer",
    "ReplayBuffer": "learning.replay_buffer",
    "Spool": "sources.spool",
    "SpoolWriter": "sources.spool_writer",
    "StreamProvider": "stream.stream_provider",
    "Switch": "learning.switch",
}
"""In which module each name is defined; it is loaded with the first use."""

__all__ = [
    "ControlServer",
    "DelayedLabels",
    "DriftDetector",
    "Folder",
    "Journal",
    "LearningRateBoost",
    "Limits",
    "ProgressiveValidation",
    "Publish",
    "RedisStream",
    "RedisWriter",
    "ReplayBuffer",
    "Spool",
    "SpoolWriter",
    "StreamProvider",
    "Switch",
]


__getattr__ = lazily(__name__, MODULES)
