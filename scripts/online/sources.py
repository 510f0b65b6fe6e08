"""Sources, each with its writer."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from onion.online import Folder, RedisStream, RedisWriter, Spool, SpoolWriter
from onion.online.sources.source import Source

CAPACITY = 20_000  # samples that may wait to be read


class Place(Protocol):
    """A source that a trainer reads and a producer fills; each process makes its own from the same folder."""

    def source(self) -> Source:
        """Return the source."""

    def begin(self) -> int:
        """Return the number of the first sample that has not been written."""

    def put(self, numbers: range) -> None:
        """Write samples, all or none."""


class WriterPlace:
    """A source with a writer, whose cursor is the number of the next sample."""

    def __init__(self, source: Callable[[], Source], writer: SpoolWriter | RedisWriter) -> None:
        self.source, self._writer = source, writer

    def begin(self) -> int:
        return int(self._writer.cursor or 0)

    def put(self, numbers: range) -> None:
        self._writer.write(_samples(numbers), cursor=str(numbers.stop))


def spool(folder: Path) -> WriterPlace:
    """Return an SQLite file."""
    path = folder / "samples.db"
    return WriterPlace(lambda: Spool(path, CAPACITY), SpoolWriter(path, "numbers", block=math.inf))


def redis(folder: Path) -> WriterPlace:
    """Return a stream of a redis-server that listens in the folder."""
    url = f"unix://{folder / 'redis.sock'}"
    writer = RedisWriter(url, "samples", "numbers", maxlen=CAPACITY, block=math.inf, timeout=300)
    return WriterPlace(lambda: RedisStream(url, "samples"), writer)


class FolderPlace:
    """Files of a lot each; the name of a file identifies its content, so that it is written once."""

    def __init__(self, folder: Path) -> None:
        self._inbox = folder / "inbox"
        self._inbox.mkdir(exist_ok=True)

    def source(self) -> Source:
        return Folder(self._inbox, settle=0)

    def begin(self) -> int:
        """Return the end of the newest file, searched for in the order in which files are moved."""
        names = [path.name for each in (".", "taken", "trained") for path in (self._inbox / each).glob("*.jsonl")]
        return max((int(name.removesuffix(".jsonl").rpartition("-")[2]) for name in names), default=0)

    def put(self, numbers: range) -> None:
        """Write a file under another name, and rename it."""
        name = f"lot-{numbers.stop:07}.jsonl"
        partial = self._inbox / f".{name}"
        partial.write_text("".join(json.dumps(sample) + "\n" for sample in _samples(numbers)))
        partial.rename(self._inbox / name)


PLACES: dict[str, Callable[[Path], Place]] = {"spool": spool, "redis": redis, "folder": FolderPlace}


def redis_server(folder: Path) -> subprocess.Popen[bytes]:
    """Start a redis-server that syncs before it answers."""
    settings = {"port": "0", "unixsocket": "redis.sock", "appendonly": "yes", "appendfsync": "always", "save": ""}
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    server = shutil.which("redis-server")
    if server is None:
        raise SystemExit("no redis-server on PATH (Debian: apt-get install redis-server)")
    with Path(os.devnull).open("wb") as nowhere:
        return subprocess.Popen([server, *words], cwd=folder, stdout=nowhere, stderr=nowhere)


def _samples(numbers: range) -> list[Any]:
    return [{"id": number} for number in numbers]
