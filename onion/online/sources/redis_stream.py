"""`RedisStream` and `RedisWriter`: samples from a Redis Stream, and into it."""

from __future__ import annotations

import json
import logging
import re
from datetime import timedelta
from time import monotonic, sleep
from typing import Any, TypeAlias

import attrs

from onion.errors import CompositionError, DataError
from onion.online.sources.redis_server import COMMIT, PUT, UNREAD, AwayError, RedisServer, RefusedError
from onion.online.sources.source import Full, Position, ReplayReader, Sample, SampleWriter, Source
from onion.validation import is_whole

log = logging.getLogger("onion")


@attrs.frozen
class Place:
    """A place in a stream: behind an entry.

    Attributes:
        id: of the entry, ``<milliseconds>-<sequence>``.
        number: of the last entry up to here that a RedisWriter wrote; None before the first.
    """

    id: str = "0-0"
    number: int | None = None

    @staticmethod
    def parse(position: Position) -> Place:
        """Return the place of a position; raise DataError if it is not one in a stream."""
        if not position:
            return Place()
        found = re.fullmatch(r"(\d+-\d+)(?:#(\d+))?", position, re.ASCII)
        if found is None:
            raise DataError(
                f"{position!r} is no position in a Redis Stream; it must be like 1700000000000-0#12, or empty."
            )
        return Place(found[1], None if found[2] is None else int(found[2]))

    def __str__(self) -> Position:
        if self.id == "0-0":
            return ""
        return self.id if self.number is None else f"{self.id}#{self.number}"

    def then(self, entry: str, number: int | None) -> Place | None:
        """Return the place behind the next entry; None: this entry cannot be the next."""
        gap = None not in (number, self.number) and number != (self.number or 0) + 1
        return None if gap or order(entry) <= order(self.id) else Place(entry, number or self.number)


def order(entry: str) -> tuple[int, int]:
    """Return the sort key of an entry's id."""
    milliseconds, _, sequence = entry.partition("-")
    return int(milliseconds), int(sequence)


CAPACITY = 100_000  # samples that may wait
SERVER_FULL_SECONDS = 30.0  # when to try again if the server has no room, in memory or on disk
MAX_ACKNOWLEDGED = 1000  # entries acknowledged at once, so that the server can serve others in between
BLOCK_SECONDS = 5.0  # longest time that the server waits for an entry in one command, in seconds
RETRY_SECONDS = 0.05  # seconds before the next attempt after the server has answered with an error

SAFE_SETTINGS = {"appendonly": "yes", "appendfsync": "always"}
"""Settings with which accepted samples survive a crash of the server."""

Fields: TypeAlias = dict[str, str]


class RedisStream(Source):
    """Samples from a Redis Stream, for many producers and hosts.

        stream = RedisStream("redis://host:6379/0", "samples")
        Runner(Saver("run"), StreamProvider(stream, pass_every=10_000), ParameterUpdater(...), ...).run()

    Several runs may learn from the same stream, each with a group of its own. Only one run at a time reads for a group:
    its checkpoint states where it continues, so at each connection the group is set back to that place. Entries that no
    checkpoint needs any more are acknowledged; what all groups have acknowledged is removed.

    A read waits for a server that is away. No sample is lost or delivered twice if the server syncs what it accepts:
    ``appendonly yes`` and ``appendfsync always``. It is an error if the server has lost what this run has read before,
    or entries in between.

    Entries not written by RedisWriter are read too: the field ``data`` if it is JSON, otherwise all fields, a dict of
    strings. They do not count towards ``maxlen``.

    Requires Redis 6.2. A position is the id of the last entry and its number.

    Args:
        url: see ``RedisServer``.
        stream: the key of the stream.
        group: of the run; created if needed. Default ``onion``.
        consumer: the name under which entries are pending in the group. Default ``trainer``.
        retention: how long entries that no group needs any more stay in the server's memory, for a replay. Default: 0.
        maxlen: of ``writer()``, as in RedisWriter. Default 100,000.

    Raises:
        CompositionError: ``retention`` is not a duration.
        OnionError: at the first read: the package redis is missing.
    """

    def __init__(
        self,
        url: str,
        stream: str,
        group: str = "onion",
        consumer: str = "trainer",
        *,
        retention: timedelta = timedelta(0),
        maxlen: int = CAPACITY,
    ) -> None:
        if not (isinstance(retention, timedelta) and retention >= timedelta(0)):
            raise CompositionError(f"RedisStream: retention must be a timedelta >= 0, got {retention!r}.")
        self.stream, self.group, self.consumer, self.retention, self.maxlen = stream, group, consumer, retention, maxlen
        self._server = RedisServer(url)
        self._place = Place()
        self._set_at: int | None = None  # the connection in which the group was set to the place
        self._uncommitted: str | None = None
        self._away = self._looked = False
        self._consumes = True

    @property
    def position(self) -> Position:
        """The place behind the last sample that was read."""
        return str(self._place)

    @position.setter
    def position(self, position: Position) -> None:
        self._place, self._set_at = Place.parse(position), None

    def read(self, n: int, timeout: float) -> list[Sample]:
        """Return the next samples; see ``Source.read``.

        Raises:
            DataError: the server denies access, the key is no stream, or the entries that come next are gone.
        """
        deadline = monotonic() + timeout
        while True:
            samples = self._try(n, max(0.0, deadline - monotonic()))
            if samples or monotonic() >= deadline:
                return samples

    def commit(self, position: Position) -> None:
        """Acknowledge what is before a position; if the server is away, at a later read."""
        if position:
            self._uncommitted = Place.parse(position).id
            try:
                self._settle()
            except (AwayError, RefusedError) as error:
                log.debug("acknowledging %s is postponed: %s", self.stream, error)

    def waiting(self) -> int | None:
        """Return how many samples have not been read yet; None: the server is away."""
        if not self._server.is_connected:
            return None
        try:
            return int(self._server.call("EVAL", UNREAD, 2, self.stream, f"{self.stream}:count", self._place.id))
        except (AwayError, RefusedError):
            return None

    def writer(self, producer: str = "default") -> RedisWriter:
        """Return a writer of samples."""
        return RedisWriter(self._server.url, self.stream, producer, maxlen=self.maxlen)

    def replay_reader(self) -> Source:
        """Return a source of the same samples that joins no group and acknowledges nothing; see ``retention``."""
        reader = RedisStream(self.url, self.stream, retention=self.retention)
        reader._consumes = False
        return ReplayReader(reader, first="0-0#0")

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._server.url

    def close(self) -> None:
        """Close the connection."""
        self._server.drop()

    def __repr__(self) -> str:
        return f"RedisStream({self.stream!r})"

    # -- reading ------------------------------------------------------------------------------------------------------

    def _try(self, n: int, seconds: float) -> list[Sample]:
        """Return what can be read within a time; nothing if the server is away."""
        if (pause := self._server.pause) > 0:
            sleep(min(pause, seconds))
            if pause > seconds:
                return []
        try:
            if self._uncommitted is not None and self._set_at is not None:
                self._settle()
            return self._read(n, seconds)
        except AwayError as error:
            if not self._away:
                log.warning("%s is away (%s); waiting for it", self._server.name, error)
            self._away = True
        except RefusedError as error:
            self._set_at = None
            if error.code not in ("NOGROUP", "UNBLOCKED", "MISCONF"):
                raise self._broken(f"{error}; check the key and the server") from error
            sleep(min(RETRY_SECONDS, seconds))
        return []

    def _read(self, n: int, seconds: float) -> list[Sample]:
        self._set()
        samples = self._follow(self._entries(n, seconds))
        if samples is None:  # another client has moved the group
            self._set_at = None
            self._set()
            samples = self._follow(self._entries(n, 0.0))
        if samples is None:
            raise self._broken(
                f"entries behind position {self._place} have been removed; resume from a newer checkpoint. No other "
                "client may trim the stream"
            )
        return samples

    def _entries(self, n: int, seconds: float) -> list[tuple[str, Fields]]:
        if not self._consumes:
            answer = self._server.call("XRANGE", self.stream, f"({self._place.id}", "+", "COUNT", n)
            return [(text(entry), pairs(fields)) for entry, fields in answer]
        block = ("BLOCK", max(1, round(1000 * min(seconds, BLOCK_SECONDS)))) if seconds > 0 else ()
        ask = ("XREADGROUP", "GROUP", self.group, self.consumer, "COUNT", n, *block, "STREAMS", self.stream, ">")
        answer = self._server.call(*ask)
        return [] if answer is None else [(text(entry), pairs(fields)) for entry, fields in answer[0][1]]

    def _follow(self, entries: list[tuple[str, Fields]]) -> list[Sample] | None:
        """Go behind some entries and return their samples; None: these are not the next ones."""
        place, samples = self._place, []
        for entry, fields in entries:
            behind = place.then(entry, _number(fields))
            if behind is None:
                return None
            place = behind
            samples.append(Sample(_data(fields), str(place)))
        if samples and not self.position and (before := (_number(entries[0][1]) or 1) - 1):
            log.warning("%s: the first %d samples have been removed; reading starts after them", self.stream, before)
        self._place = place
        return samples

    def _set(self) -> None:
        """Set the group to the place, once per connection."""
        if not self._consumes or (self._set_at == self._server.connections and self._server.is_connected):
            return
        last = self._last()
        if order(last or "0-0") < order(self._place.id):
            raise self._broken(
                f"the last entry is {last or 'none'}, and this run has read up to {self._place.id}; the server has "
                "lost data, or it is another one: restore its data, or start a new run"
            )
        try:
            self._server.call("XGROUP", "CREATE", self.stream, self.group, self._place.id, "MKSTREAM")
        except RefusedError as error:
            if error.code != "BUSYGROUP":
                raise
            self._server.call("XGROUP", "SETID", self.stream, self.group, self._place.id)
        self._look_at_settings()
        self._set_at, self._away = self._server.connections, False

    def _last(self) -> str | None:
        """Return the id of the last entry ever added; None: there is no stream."""
        try:
            answer = self._server.call("XINFO", "STREAM", self.stream)
        except RefusedError as error:
            if "no such key" in str(error):
                return None
            raise
        return text(answer[answer.index(b"last-generated-id") + 1])

    def _look_at_settings(self) -> None:
        """Warn once if this server may lose samples."""
        if self._looked:
            return
        self._looked = True
        for name, wanted in SAFE_SETTINGS.items():
            try:
                value = pairs(self._server.call("CONFIG", "GET", name)).get(name, wanted)
            except RefusedError:  # access is denied
                return
            if value != wanted:
                log.warning(
                    "%s has %s %s: accepted samples may be lost when it crashes; set %s",
                    self._server.name,
                    name,
                    value,
                    " and ".join(f"{each} {safe}" for each, safe in SAFE_SETTINGS.items()),
                )
                return

    def _settle(self) -> None:
        """Acknowledge what is due, portion by portion."""
        last, retention = self._uncommitted, round(1000 * self.retention.total_seconds())
        while last is not None and self._server.call(
            "EVAL", COMMIT, 1, self.stream, self.group, last, MAX_ACKNOWLEDGED, retention
        ):
            pass
        self._uncommitted = None

    def _broken(self, what: str) -> DataError:
        return DataError(f"{self._server.name}, stream {self.stream}: {what}.")


def text(word: Any) -> str:
    """Return a word of an answer as text."""
    return word.decode(errors="replace") if isinstance(word, bytes) else str(word)


def pairs(words: list[Any]) -> Fields:
    """Return a list of alternating names and values as a dict."""
    return {text(name): text(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def _number(fields: Fields) -> int | None:
    number = fields.get("n", "")
    return int(number) if "data" in fields and number.isascii() and number.isdigit() else None


def _data(fields: Fields) -> Any:
    try:
        return json.loads(fields["data"])
    except (KeyError, ValueError, RecursionError):
        return fields


class RedisWriter(SampleWriter):
    """Put samples into a Redis Stream, from any host.

        with RedisWriter("redis://host:6379/0", "samples", producer="clicks", block=60) as writer:
            for number, samples in enumerate(lots, start=int(writer.cursor or 0) + 1):
                writer.write(samples, cursor=str(number))

    Samples and their producer's cursor are written atomically by one script; a write with the cursor that is stored
    already takes nothing. Accepted samples are on the server's disk with ``appendonly yes`` and ``appendfsync always``.

    A write waits for a server that is away. Only a cursor can tell whether an interrupted write succeeded: one with a
    cursor is sent again, one without is not.

    Args:
        url: see ``RedisServer``.
        stream: the key of the stream. Beside it are ``<stream>:marks``, the cursors, and ``<stream>:count``.
        producer: owner of the cursor. Default ``default``. One process at a time writes for a producer with cursors.
        maxlen: samples that may wait to be read, by the slowest group; all of them while there is no group. Beyond it
            a write raises ``Full``. Default 100,000.
        block: seconds to wait for room. Default None: not at all.
        timeout: seconds to wait for a server that is away. Default 30.

    Raises:
        CompositionError: ``maxlen`` is not an integer >= 1.
        DataError: in use: the server is away for longer, or denies access, or the key is no stream.
    """

    POLL_SECONDS = 0.05

    def __init__(
        self,
        url: str,
        stream: str,
        producer: str = "default",
        *,
        maxlen: int = CAPACITY,
        block: float | None = None,
        timeout: float = 30.0,
    ) -> None:
        if not (is_whole(maxlen) and maxlen >= 1):
            raise CompositionError(f"RedisWriter: maxlen must be an integer >= 1, got {maxlen!r}.")
        self.stream, self.producer, self.maxlen, self.block, self.timeout = stream, producer, maxlen, block, timeout
        self._server = RedisServer(url)

    @property
    def cursor(self) -> str | None:
        """The cursor of the last write of this producer that had one; None before its first."""
        cursor = self._call(True, "HGET", f"{self.stream}:marks", self.producer)
        return None if cursor is None else str(cursor.decode())

    def close(self) -> None:
        """Close the connection; a later write opens another one."""
        self._server.drop()

    def __repr__(self) -> str:
        return f"RedisWriter({self.stream!r}, {self.producer!r})"

    def _try_write(self, texts: list[str], cursor: str | None) -> int | None:
        if len(texts) > self.maxlen:
            raise DataError(
                f"{self.stream}: {len(texts)} samples in one write exceed maxlen, {self.maxlen}; write fewer at a time."
            )
        keys = (self.stream, f"{self.stream}:marks", f"{self.stream}:count")
        arguments = (self.producer, "0" if cursor is None else "1", cursor or "", self.maxlen)
        taken = int(self._call(cursor is not None, "EVAL", PUT, len(keys), *keys, *arguments, *texts))
        return taken if taken >= 0 else None

    def _call(self, may_repeat: bool, *command: str | int) -> Any:
        deadline = monotonic() + self.timeout
        while True:
            try:
                return self._server.call(*command)
            except RefusedError as error:
                if error.code in ("OOM", "MISCONF"):
                    log.warning("%s accepts no samples: %s", self._server.name, error)
                    raise Full(SERVER_FULL_SECONDS) from error
                raise DataError(
                    f"{self._server.name}, {self.stream}: {error}; check the key and the server."
                ) from error
            except AwayError as error:
                if error.sent and not may_repeat:
                    raise DataError(
                        f"{self._server.name} was lost during a write ({error}), and it is unknown whether that "
                        "succeeded; writes with a cursor can be repeated."
                    ) from error
                if monotonic() + self._server.pause > deadline:
                    raise DataError(f"{self._server.name} is away ({error}); start it, or check the URL.") from error
                sleep(self._server.pause)
