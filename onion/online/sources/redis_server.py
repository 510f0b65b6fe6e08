"""A connection to a Redis server that may be unreachable for a while, and the Lua scripts it runs atomically."""

from __future__ import annotations

from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from onion.errors import DataError, OnionError

FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.05, 1.0
"""Seconds before the second attempt to connect, and the maximum between later ones; the delay doubles each time."""

CONNECT_SECONDS, ANSWER_SECONDS = 2.0, 10.0  # time limits for a connection and for an answer, in seconds


class AwayError(Exception):
    """The server cannot be reached, or not yet; ``sent``: a command may have reached it."""

    def __init__(self, reason: str, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class RefusedError(Exception):
    """The server has answered with an error; ``code`` is its first word, such as ``NOGROUP``."""

    def __init__(self, answer: str, code: str) -> None:
        super().__init__(answer)
        self.code = code


class RedisServer:
    """Send commands and return the plain answers (RESP 2), over one connection that is opened when it is needed.

    Nothing is sent twice, and a lost connection is not replaced silently, as clients usually do: only the caller knows
    what has to be checked then. ``connections`` counts the connections so far.

    Args:
        url: ``redis://[user:password@]host[:port][/db]``, ``rediss://`` (TLS), ``unix:///path``.

    Raises:
        OnionError: the package redis is missing.
        DataError: the URL is invalid.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.connections = 0
        self._connection: Any = None  # the client's class for it has other names in other versions
        self._wait, self._due = FIRST_RETRY_SECONDS, 0.0

    @property
    def name(self) -> str:
        """The URL without its password, for messages."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as known."""
        return self._connection is not None

    @property
    def pause(self) -> float:
        """Seconds until the next attempt to reach a server that is away; 0: now."""
        return 0.0 if self.is_connected else max(0.0, self._due - monotonic())

    def call(self, *command: str | int) -> Any:
        """Send a command and return its answer: bytes, int, None, or lists of them.

        Raises:
            AwayError: the server cannot be reached.
            RefusedError: it has answered with an error.
            DataError: it denies access.
        """
        connection = self._connection or self._connect()
        import redis

        try:
            connection.send_command(*command)
            answer = connection.read_response()
        except redis.BusyLoadingError as error:
            raise self._away(error, sent=False) from error
        except redis.AuthenticationError as error:  # a subclass of ConnectionError
            raise self._denied(error) from error
        except redis.ResponseError as error:
            words = str(error)  # the client removes the code of "OOM ..."
            code = "OOM" if isinstance(error, redis.OutOfMemoryError) else words.partition(" ")[0]
            raise RefusedError(words, code) from error
        except (redis.RedisError, OSError) as error:
            raise self._away(error, sent=True) from error
        except BaseException:
            self.drop()  # otherwise the unread answer would be taken for that of the next command
            raise
        self._wait = FIRST_RETRY_SECONDS
        return answer

    def drop(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()

    def _connect(self) -> Any:
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError as error:
            raise OnionError("Redis Streams need the package redis: pip install 'onion-paddle[redis]'") from error
        settings = {"socket_timeout": ANSWER_SECONDS, "socket_connect_timeout": CONNECT_SECONDS, "protocol": 2}
        try:
            pool = redis.ConnectionPool.from_url(self.url, retry=Retry(NoBackoff(), 0), **settings)
            connection: Any = pool.make_connection()
        except ValueError as error:
            raise DataError(
                f"{self.name} is not the URL of a Redis server ({error}); it must be like redis://host:6379/0."
            ) from None
        try:
            connection.connect()
        except redis.BusyLoadingError as error:
            raise self._away(error, sent=False) from error
        except (redis.AuthenticationError, redis.ResponseError) as error:
            raise self._denied(error) from error
        except (redis.RedisError, OSError) as error:
            raise self._away(error, sent=False) from error
        self._connection = connection
        self.connections += 1
        return connection

    def _away(self, error: Exception, sent: bool) -> AwayError:
        self.drop()
        self._due = monotonic() + self._wait
        self._wait = min(MAX_RETRY_SECONDS, 2 * self._wait)
        return AwayError(str(error), sent)

    def _denied(self, error: Exception) -> DataError:
        self.drop()
        return DataError(f"{self.name} denies access ({error}); check user and password in the URL.")


_COMMON = """
local function named(list, name)
    for i = 1, #list, 2 do
        if list[i] == name then return list[i + 1] end
    end
end

local function unread(stream, count, last)
    local entry = redis.call('XRANGE', stream, '(' .. last, '+', 'COUNT', 1)[1]
    if not entry then return 0 end
    local n = named(entry[2], 'n')
    return n and tonumber(redis.call('GET', count) or 0) - tonumber(n) + 1 or redis.call('XLEN', stream)
end

local function groups(stream)
    return redis.call('EXISTS', stream) == 1 and redis.call('XINFO', 'GROUPS', stream) or {}
end
"""

PUT = (
    _COMMON
    + """
local stream, marks, count = KEYS[1], KEYS[2], KEYS[3]
local producer, has_mark, mark, most = ARGV[1], ARGV[2] == '1', ARGV[3], tonumber(ARGV[4])
local first = 5
if has_mark and redis.call('HGET', marks, producer) == mark then return 0 end
local waiting, readers = 0, groups(stream)
for _, group in ipairs(readers) do
    waiting = math.max(waiting, unread(stream, count, named(group, 'last-delivered-id')))
end
if #readers == 0 then waiting = redis.call('XLEN', stream) end
local lot = #ARGV - first + 1
if lot > 0 and waiting + lot > most then return -1 end
if has_mark then redis.call('HSET', marks, producer, mark) end
local n = redis.call('INCRBY', count, lot) - lot
for i = first, #ARGV do
    n = n + 1
    redis.call('XADD', stream, '*', 'n', string.format('%.0f', n), 'data', ARGV[i])
end
return lot
"""
)
"""Keys: stream, marks, count. Arguments: producer, 1 or 0 for a mark, the mark, the capacity, the samples.

Returns the number of samples taken; -1: there is no room for them.
"""

UNREAD = _COMMON + "return unread(KEYS[1], KEYS[2], ARGV[1])"
"""Keys: stream, count. Argument: an id. Returns the number of entries behind it."""

COMMIT = (
    _COMMON
    + """
local stream, group, last, portion, keep = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ids = {}
for i, entry in ipairs(redis.call('XPENDING', stream, group, '-', last, portion)) do ids[i] = entry[1] end
if #ids > 0 then redis.call('XACK', stream, group, unpack(ids)) end
if #ids == portion then return 1 end

local function before(a, b)
    local at, an = string.match(a, '(%d+)-(%d+)')
    local bt, bn = string.match(b, '(%d+)-(%d+)')
    at, an, bt, bn = tonumber(at), tonumber(an), tonumber(bt), tonumber(bn)
    return at < bt or at == bt and an < bn
end

local time = redis.call('TIME')
local least = string.format('%.0f-0', math.max(0, time[1] * 1000 + math.floor(time[2] / 1000) - keep + 1))
for _, each in ipairs(groups(stream)) do
    local delivered = named(each, 'last-delivered-id')
    local pending = redis.call('XPENDING', stream, named(each, 'name'))
    if before(delivered, least) then least = delivered end
    if pending[1] > 0 and before(pending[2], least) then least = pending[2] end
end
redis.call('XTRIM', stream, 'MINID', least)
return 0
"""
)
"""Key: stream. Arguments: group, id, entries acknowledged at once, milliseconds of retention.

Acknowledges the group's entries up to an id; then removes what all groups have acknowledged. Returns 1: there is more.
"""
