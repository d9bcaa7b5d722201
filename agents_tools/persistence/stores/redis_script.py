"""The Lua script with which a Redis server changes a log, atomically and once."""

from __future__ import annotations

__all__ = ["DROP_SCRIPT", "SCRIPT"]

SCRIPT = """
-- ARGV: prefix, writer, number of the request, operation, name of the log, its arguments
local p, writer, number, op, name = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local call = redis.call
local memory = p .. ':writer:' .. writer
local last_number = tonumber(call('HGET', memory, 'last') or 0)
if number <= last_number then
  local reply = call('HGET', memory, number)
  return reply and cmsgpack.unpack(reply) or {'late'}
end

local function key(part) return p .. ':' .. part .. ':' .. name end
local state = key('state')
local time = call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000

local function done(reply)
  call('HSET', memory, 'last', number, number, cmsgpack.pack(reply))
  call('HDEL', memory, number - 16384)
  call('PEXPIRE', memory, 3600000)
  return reply
end

local function text(value) return string.format('%.0f', value) end

-- The holder of a lease that is not free. `ended` has holders whose processes have ended.
local ended = {}
local function holder_of(other)
  local lease = call('HMGET', other, 'holder', 'expires')
  if not lease[1] or ended[lease[1]] or tonumber(lease[2] or 0) < now then return nil end
  return lease[1]
end

local function set_session(session)
  local old = call('HGET', state, 'session')
  if old == session then return end
  if old then call('ZREM', p .. ':session:' .. old, name) end
  call('HSET', state, 'session', session)
  call('HSET', p .. ':sessions', name, session)
  call('ZADD', p .. ':session:' .. session, call('HGET', state, 'seq'), name)
end

local function set_status(status)
  local old = call('HGET', state, 'status')
  if old then call('SREM', p .. ':status:' .. old, name) end
  call('HSET', state, 'status', status)
  call('SADD', p .. ':status:' .. status, name)
end

local function hold_session()
  local session = call('HGET', state, 'session')
  if session then call('SADD', p .. ':held:' .. session, name) end
end

local function free()
  local session = call('HGET', state, 'session')
  if session then call('SREM', p .. ':held:' .. session, name) end
  call('HDEL', state, 'holder', 'expires')
end

local function purge()
  free()
  local known = call('HMGET', state, 'session', 'status')
  if known[1] then call('ZREM', p .. ':session:' .. known[1], name) end
  if known[2] then call('SREM', p .. ':status:' .. known[2], name) end
  call('ZREM', p .. ':logs', name)
  call('HDEL', p .. ':sessions', name)
  call('DEL', state, key('events'), key('display'), key('inbox'), key('blobs'))
end

if op == 'take' then
  -- holder, ttl, session or '', ended holders
  local holder, session = ARGV[6], ARGV[8]
  for i = 9, #ARGV do ended[ARGV[i]] = true end
  if session ~= '' then
    for _, other in ipairs(call('SMEMBERS', p .. ':held:' .. session)) do
      local active = other ~= name and holder_of(p .. ':state:' .. other)
      if active then return {'session', active, other} end
    end
  end
  local active = holder_of(state)
  if active and active ~= holder then return {'held', active} end
  if call('EXISTS', state) == 0 then
    call('HSET', state, 'seq', call('INCR', p .. ':seq'))
    call('ZADD', p .. ':logs', call('HGET', state, 'seq'), name)
  end
  local epoch = call('HINCRBY', state, 'epoch', 1)
  call('HSET', state, 'holder', holder, 'expires', string.format('%.6f', now + ARGV[7]))
  if session ~= '' then set_session(session) end
  hold_session()
  if call('HGET', state, 'status') == 'interrupted' then set_status('running') end
  local known = call('HMGET', state, 'last', 'reserved', 'message', 'agent')
  return done({'ok', epoch, known[1] or '-1', known[2] or '-1', known[3] or '0',
    known[4] and '1' or '0'})

elseif op == 'release' then
  -- epoch, reserved id
  if call('HGET', state, 'epoch') == ARGV[6] and call('HEXISTS', state, 'holder') == 1 then
    free()
    call('HSET', state, 'reserved', ARGV[7])
    local known = call('HMGET', state, 'appended', 'message')
    if not known[1] and not known[2] and ARGV[7] == '-1' then purge() end
  end
  return done({'ok'})

elseif op == 'renew' then
  -- ttl, then the epoch and the name of each log
  local lost = {'ok'}
  for i = 7, #ARGV, 2 do
    local other = p .. ':state:' .. ARGV[i + 1]
    if call('HGET', other, 'epoch') == ARGV[i] and call('HEXISTS', other, 'holder') == 1 then
      call('HSET', other, 'expires', string.format('%.6f', now + ARGV[6]))
    else
      lost[#lost + 1] = ARGV[i + 1]
    end
  end
  return done(lost)

elseif op == 'append' then
  -- epoch, last acknowledged id, expected count or '', used id, reserved id, ttl in ms or
  -- 0, status or '', whether display events are deleted, id up to which a row is no repeated one,
  -- then four lists with their lengths:
  -- facts of the run, consumed messages, large texts, events
  local known = call('HMGET', state, 'epoch', 'holder', 'last', 'reserved', 'appended')
  local last, appended = tonumber(known[3] or -1), tonumber(known[5] or 0)
  if not known[1] or (known[1] == ARGV[6] and last < tonumber(ARGV[7])) then
    return {'lost', text(last)}
  end
  if known[1] ~= ARGV[6] or not known[2] then return {'stale'} end
  if ARGV[8] ~= '' and tonumber(ARGV[8]) ~= appended then return {'count', text(appended)} end
  local at = 15
  local function list()
    local items = {}
    for i = at + 1, at + tonumber(ARGV[at]) do items[#items + 1] = ARGV[i] end
    at = at + tonumber(ARGV[at]) + 1
    return items
  end
  local facts, consumed, blobs, rows = list(), list(), list(), list()
  local used, ids, starts = tonumber(ARGV[9]), {}, {}
  local known_id, stored = tonumber(ARGV[14]), last
  for i = 1, #rows, 7 do
    local id, next_id = tonumber(rows[i]), math.max(last, used) + 1
    if id <= known_id or id > stored then
      if id == -1 then id = next_id end
      if id <= last then return {'id', text(id), text(next_id)} end
      ids[#ids + 1], starts[#starts + 1], last = id, i, id
    end
  end
  local size = 0
  for n, id in ipairs(ids) do
    local i = starts[n]
    call('XADD', key('events'), text(id + 1) .. '-0', 'e', rows[i + 1], 'l', rows[i + 2],
      'c', rows[i + 3])
    size = size + tonumber(rows[i + 5])
    if rows[i + 4] == '1' then call('HSET', key('display'), text(id), rows[i + 5]) end
    if rows[i + 6] ~= '' then
      call('HSETNX', state, 'started', rows[i + 6])
      call('HSET', state, 'updated', rows[i + 6])
    end
  end
  call('HSET', state, 'last', text(last))
  if tonumber(ARGV[10]) > tonumber(known[4] or -1) then
    call('HSET', state, 'reserved', ARGV[10])
  end
  if #ids > 0 then
    call('HINCRBY', state, 'appended', #ids)
    call('HINCRBY', state, 'events', #ids)
    call('HINCRBY', state, 'size', text(size))
  end
  for i = 1, #blobs, 2 do call('HSET', key('blobs'), blobs[i], blobs[i + 1]) end
  for i = 1, #facts, 2 do
    if facts[i] == 'session' then
      set_session(facts[i + 1])
      hold_session()
    else
      call('HSET', state, facts[i], facts[i + 1])
    end
  end
  for _, message in ipairs(consumed) do
    local unique = call('HGET', key('inbox'), 'n' .. message)
    call('HDEL', key('inbox'), 'm' .. message, 'n' .. message)
    if unique then call('HDEL', key('inbox'), 'k' .. unique) end
  end
  if ARGV[12] ~= '' then
    set_status(ARGV[12])
    if ARGV[12] ~= 'running' then free() end
  end
  if ARGV[13] == '1' then
    local shown = call('HGETALL', key('display'))
    local dropped = 0
    for i = 1, #shown, 2 do
      call('XDEL', key('events'), text(tonumber(shown[i]) + 1) .. '-0')
      dropped = dropped + tonumber(shown[i + 1])
    end
    if #shown > 0 then
      call('HINCRBY', state, 'events', text(-#shown / 2))
      call('HINCRBY', state, 'size', text(-dropped))
      call('DEL', key('display'))
    end
  end
  if ARGV[11] ~= '0' then
    for _, part in ipairs({'state', 'events', 'display', 'inbox', 'blobs'}) do
      call('PEXPIRE', key(part), ARGV[11])
    end
  end
  call('PUBLISH', p .. ':changes', '')
  return done({'ok', text(last)})

elseif op == 'post' then
  -- body, then the key if it has one
  if call('EXISTS', state) == 0 then return {'ok', '0'} end
  local unique = ARGV[7]
  if unique and call('HEXISTS', key('inbox'), 'k' .. unique) == 1 then return {'posted'} end
  local message = call('HINCRBY', state, 'message', 1)
  call('HSET', key('inbox'), 'm' .. message, ARGV[6])
  if unique then
    call('HSET', key('inbox'), 'k' .. unique, message, 'n' .. message, unique)
  end
  call('PUBLISH', p .. ':changes', '')
  return done({'ok', message})

elseif op == 'delete' then
  -- holder, ended holders
  for i = 7, #ARGV do ended[ARGV[i]] = true end
  local active = holder_of(state)
  if active and active ~= ARGV[6] then return {'held', active} end
  purge()
  return done({'ok'})
end
return redis.error_reply('unknown operation')
"""
"""A request that is sent again because its reply was lost gets the reply of the first attempt.

The numbers of a writer's requests increase. A request with a smaller number than one that was done
is refused, because it was given up by its writer and arrives late.
"""

DROP_SCRIPT = """
-- ARGV: prefix, names of logs that the server has deleted after their ttl
local p, call = ARGV[1], redis.call
for i = 2, #ARGV do
  local name = ARGV[i]
  if call('EXISTS', p .. ':state:' .. name) == 0 then
    local session = call('HGET', p .. ':sessions', name)
    if session then
      call('ZREM', p .. ':session:' .. session, name)
      call('SREM', p .. ':held:' .. session, name)
      call('HDEL', p .. ':sessions', name)
    end
    for _, status in ipairs({'running', 'interrupted', 'ok', 'error', 'cancelled'}) do
      call('SREM', p .. ':status:' .. status, name)
    end
    call('ZREM', p .. ':logs', name)
  end
end
"""
"""The server deletes the keys of a log, and not its name in the lists of names."""
