"""What the Redis server does in one go: scripts in Lua, each whole or not at all.

Beside a stream stand two keys: ``<stream>:marks``, a hash of the producers' marks, and ``<stream>:count``, how many
entries were ever written. Each entry of ours has its number, from 1, in the field ``n``, and the sample in ``data``. So
it costs nothing to tell how many wait, and a gap is seen.
"""

from __future__ import annotations

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
"""Keys: stream, marks, count. Arguments: producer, 1 or 0 for a mark, the mark, the most that may wait, the samples.

Returns how many were taken; -1: there is no room for them.
"""

UNREAD = _COMMON + "return unread(KEYS[1], KEYS[2], ARGV[1])"
"""Keys: stream, count. Argument: an id. Returns how many entries are behind it."""

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
"""Key: stream. Arguments: group, id, how many at once, milliseconds for which entries stay.

Acknowledges what the group has up to an id; then removes what all groups have acknowledged. Returns 1: there is more.
"""
