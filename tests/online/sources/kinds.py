"""The kinds of sources, and ways to make and to fill one."""

import json
from datetime import timedelta

from onion.online import Folder, RedisStream, RedisWriter, Spool, SpoolWriter


class SpoolKind:
    """A spool in a folder.

    Attributes:
        wrong: what is no position in it.
        no_retention: what is no retention.
        removed: the retention with which samples are removed as soon as they are committed.
        counts: whether it knows how many samples wait.
    """

    wrong = ("x", "-1", "1.5", "²", "1@", "1@x/1.000000", f"1@{'0' * 16}/1")
    no_retention = (-1, 1.5, "day", None, timedelta(-1))
    removed, counts = 0, True

    def __init__(self, folder, url=None):
        folder.mkdir(exist_ok=True)
        self.at = folder / "samples.db"

    def make(self, **settings):
        return Spool(self.at, **settings)

    def writer(self, producer="default", **settings):
        return SpoolWriter(self.at, producer, **settings)

    def put(self, rows):
        with self.writer() as writer:
            writer.write(rows)


class FolderKind(SpoolKind):
    """A folder, of which each file is what was put in at once."""

    wrong = ("x", "1", "1:", "-1:0", "²:1", "1:1@", "1:1@x", "1:1@" + "0" * 17)
    counts = False

    def __init__(self, folder, url=None):
        self.at, self.files = folder / "inbox", 0
        self.at.mkdir(parents=True)

    def make(self, **settings):
        return Folder(self.at, settle=0, **settings)

    def put(self, rows):
        self.files += 1
        (self.at / f"{self.files:06}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


class RedisKind(SpoolKind):
    """A stream of a redis-server, whose key is the name of the folder."""

    wrong = ("x", "12", "1-", "1-2#", "1-2#x", "²-1")
    no_retention = (timedelta(-1), 5, None)
    removed = timedelta(0)

    def __init__(self, folder, url):
        self.at, self.key, self.maxlen = url, folder.name, 100_000

    def make(self, capacity=100_000, **settings):
        self.maxlen = capacity
        return RedisStream(self.at, self.key, **{"retention": timedelta(days=1), **settings})

    def writer(self, producer="default", **settings):
        return RedisWriter(self.at, self.key, producer, maxlen=self.maxlen, **settings)


def kind_of(request, kind, folder):
    """Make one of these kinds, with a redis-server if it needs one."""
    return kind(folder, request.getfixturevalue("url") if kind is RedisKind else None)
