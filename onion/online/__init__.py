"""Online learning: data that arrive while training runs, and control of the running loop over the network.

    from onion.online import ControlServer, Journal, Spool, StreamProvider

    Runner(Saver("run"), Journal(), StreamProvider(Spool("samples.db"), pass_every=10_000), ControlServer(), ...).run()

``stream``: batches of samples as they arrive. ``sources``: where samples come from. ``journal``: external inputs, and
the replay of a run. ``control``: commands and status. ``http``: the service. ``learning``: validation, drift detection,
replayed samples, snapshots.

Extras: ``[online]`` for ControlServer, ``[redis]`` for RedisStream and RedisWriter, ``[drift]`` for DriftDetector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onion.lazy import lazily

if TYPE_CHECKING:
    from onion.online.control.control_server import ControlServer
    from onion.online.http import Limits
    from onion.online.journal.journal import Journal
    from onion.online.learning.drift import DriftDetector, LearningRateBoost
    from onion.online.learning.progressive_validation import DelayedLabels, ProgressiveValidation
    from onion.online.learning.publish import Publish
    from onion.online.learning.replay_buffer import ReplayBuffer
    from onion.online.learning.switch import Switch
    from onion.online.sources.folder import Folder
    from onion.online.sources.redis_stream import RedisStream, RedisWriter
    from onion.online.sources.spool import Spool, SpoolWriter
    from onion.online.stream.stream_provider import StreamProvider

MODULES = {
    "ControlServer": "control.control_server",
    "DelayedLabels": "learning.progressive_validation",
    "DriftDetector": "learning.drift",
    "Folder": "sources.folder",
    "Journal": "journal.journal",
    "LearningRateBoost": "learning.drift",
    "Limits": "http",
    "ProgressiveValidation": "learning.progressive_validation",
    "Publish": "learning.publish",
    "RedisStream": "sources.redis_stream",
    "RedisWriter": "sources.redis_stream",
    "ReplayBuffer": "learning.replay_buffer",
    "Spool": "sources.spool",
    "SpoolWriter": "sources.spool",
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
