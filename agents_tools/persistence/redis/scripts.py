"""Scripts that run atomically inside a Redis server."""

from __future__ import annotations

__all__ = ["APPEND", "RELEASE", "RESERVE"]

APPEND = """
-- KEYS: log, state, lease, names
-- ARGV: token, token whose lease may be taken, lease ms, number, acknowledged, expected count or
--       '', longest log or 0, ttl ms or 0, name of the log, greatest id given, then for each
--       event its id and its JSON
local log, state, lease = KEYS[1], KEYS[2], KEYS[3]
local token, number, acked = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
local holder = redis.call('GET', lease)
if holder and holder ~= token and holder ~= ARGV[2] then
  return {'held', holder, redis.call('PTTL', lease)}
end
local known = redis.call('HMGET', state, 'writer', 'batch', 'count', 'last', 'reserved')
local own = known[1] == token
local batch = own and tonumber(known[2]) or 0
if acked > batch then
  if known[1] and not own then return {'taken', known[1]} end
  return {'lost', acked - batch}
end
local count, last = tonumber(known[3] or 0), tonumber(known[4] or -1)
if number <= batch then return {'ok', tonumber(redis.call('HGET', state, number % 256))} end
if number > batch + 1 then return {'gap'} end
if ARGV[6] ~= '' and tonumber(ARGV[6]) ~= count then return {'count', count} end
local ids, reserved = {}, tonumber(ARGV[10])
if not own then reserved = math.max(reserved, tonumber(known[5] or -1)) end
for i = 11, #ARGV, 2 do
  local id = tonumber(ARGV[i])
  if id == -1 then
    id = math.max(last, reserved) + 1
  elseif id <= last then
    return {'id', id, math.max(last, reserved) + 1}
  end
  ids[#ids + 1], last = id, id
end
for i, id in ipairs(ids) do
  local place, json = string.format('%.0f-0', id + 1), ARGV[10 + 2 * i]
  if ARGV[7] == '0' then
    redis.call('XADD', log, place, 'event', json)
  else
    redis.call('XADD', log, 'MAXLEN', '~', ARGV[7], place, 'event', json)
  end
end
redis.call('HSET', state, 'writer', token, 'batch', number, 'count', count + #ids,
  'last', string.format('%.0f', last), number % 256, string.format('%.0f', last))
redis.call('SET', lease, token, 'PX', ARGV[3])
redis.call('SADD', KEYS[4], ARGV[9])
if ARGV[8] ~= '0' then
  redis.call('PEXPIRE', log, ARGV[8])
  redis.call('PEXPIRE', state, ARGV[8])
end
return {'ok', last}
"""
"""Appends one batch exactly once: a batch that is sent again after a lost reply is recognized by
its number, and its last id is returned. Numbers have no gaps, so that no batch overtakes a rejected
one."""

RESERVE = """
-- KEYS: state; ARGV: id
if tonumber(redis.call('HGET', KEYS[1], 'reserved') or -1) < tonumber(ARGV[1]) then
  redis.call('HSET', KEYS[1], 'reserved', ARGV[1])
end
"""

RELEASE = """
-- KEYS: state, lease; ARGV: token, greatest id that was given
if redis.call('GET', KEYS[2]) == ARGV[1] then
  redis.call('HSET', KEYS[1], 'reserved', ARGV[2])
  redis.call('DEL', KEYS[2])
end
"""
"""Releases the lease and the ids that were reserved but not used."""
