"""Where samples come from: each a ``Source`` (``onion.online.source``), and what puts samples in.

``Spool`` is a file on this machine, ``RedisStream`` a server for many machines, ``Folder`` takes whole files. Each is
imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onion.online.sources.folder import Folder
    from onion.online.sources.redis_stream import RedisStream
    from onion.online.sources.redis_writer import RedisWriter
    from onion.online.sources.spool import Spool
    from onion.online.sources.spool_writer import SpoolWriter

SOURCES = {
    "Folder": "folder",
    "RedisStream": "redis_stream",
    "RedisWriter": "redis_writer",
    "Spool": "spool",
    "SpoolWriter": "spool_writer",
}
"""The names, and the files in this folder they stand in."""

__all__ = ["Folder", "RedisStream", "RedisWriter", "Spool", "SpoolWriter"]


def __getattr__(name: str) -> Any:
    if name not in SOURCES:
        raise AttributeError(f"module 'onion.online.sources' has no attribute {name!r}")
    return getattr(import_module(f"onion.online.sources.{SOURCES[name]}"), name)
