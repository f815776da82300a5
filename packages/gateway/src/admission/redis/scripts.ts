/**
 * The scripts that run in Redis. Each is atomic. Argument 1 is a JSON object; key 1 is the hash with the state of the limits:
 * `epoch` (the keys of other epochs are not used), `run` (of the server) and `ready` (when the rebuild of an epoch is over).
 *
 * Keys of an epoch: `s:` slots (sorted set, by the end of leases), `c:` counters (hash), `b:` one window of an account
 * (hash), `r:` a reservation (hash), `leases` (sorted set of reservations), `dirty` (windows to read again), `joined`
 * and `nodes` (all that took part, and those that are alive).
 */

import { LEASE_MS, RATE_MS } from '../backend.ts';
import {
  ALIVE_MS,
  CRASH_MS,
  DONE_MS,
  IDLE_MS,
  type Operation,
  PRUNED,
  QUIET_MS,
  REBUILD_MS,
  RELOAD_MS,
} from '../shared/driver.ts';

const PRELUDE = `
local req = cjson.decode(ARGV[1])
local now = req.now
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local base = req.prefix .. req.epoch .. ':'
local LEASE, RATE, IDLE = ${LEASE_MS}, ${RATE_MS}, ${IDLE_MS}

-- The keys of an epoch that has ended are not deleted, so each one expires unless it is used.
local function keep(name) redis.call('PEXPIRE', base .. name, IDLE) end
`;

/** Refuses calls for another epoch, and those whose caller has stopped waiting. */
const CHECK = `
local state = redis.call('HMGET', KEYS[1], 'epoch', 'ready')
if state[1] ~= req.epoch then return {'epoch', now} end
if req.deadline and now > req.deadline then return {'late', now} end
`;

const FUNCTIONS = `
local function mark(key, till)
  local old = tonumber(redis.call('ZSCORE', base .. 'dirty', key) or 0)
  if till >= old then redis.call('ZADD', base .. 'dirty', till, key) end
  keep('dirty')
end

local function counter(name)
  local found = redis.call('HMGET', base .. 'c:' .. name, 'start', 'used')
  local start, used = tonumber(found[1]), tonumber(found[2])
  if not start or now - start >= RATE then return now, 0 end
  return start, used
end

local function count(name, start, used)
  redis.call('HSET', base .. 'c:' .. name, 'start', start, 'used', used)
  redis.call('PEXPIRE', base .. 'c:' .. name, RATE * 2)
end

local function hold(slots, member)
  redis.call('ZADD', base .. 's:' .. slots, now + LEASE, member)
  redis.call('PEXPIRE', base .. 's:' .. slots, LEASE * 2)
end

local function reserve(keys, by)
  for _, key in ipairs(keys) do
    redis.call('HINCRBY', base .. 'b:' .. key, 'reserved', by)
    redis.call('PEXPIRE', base .. 'b:' .. key, IDLE)
  end
end

local function prune()
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', base .. 'leases', '-inf', now, 'LIMIT', 0, ${PRUNED})) do
    local held = redis.call('HMGET', base .. 'r:' .. id, 'micros', 'keys')
    redis.call('ZREM', base .. 'leases', id)
    redis.call('DEL', base .. 'r:' .. id)
    if held[1] and held[2] then
      local keys = cjson.decode(held[2])
      reserve(keys, -tonumber(held[1]))
      for _, key in ipairs(keys) do mark(key, now + ${CRASH_MS}) end
    end
  end
end
`;

/** Admits a request: a slot, counters and reservations, all or none. The reply has what is spent and reserved of its windows then. */
const TAKE = `${PRELUDE}${CHECK}
if tonumber(state[2] or 0) > now then return {'rebuild', now, state[2]} end
${FUNCTIONS}
prune()
if req.slots then
  local key = base .. 's:' .. req.slots
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  if redis.call('ZCARD', key) >= req.slot_limit then return {'no slot', now} end
end
local reply, starts, sums = {'taken', now}, {}, {}
for i, rate in ipairs(req.rates) do
  local start, used = counter(rate.counter)
  starts[i], sums[i] = start, used + rate.amount
  if sums[i] > rate.limit then
    table.insert(reply, start)
    table.insert(reply, used)
    reply[1] = 'over rate'
    return reply
  end
  table.insert(reply, start)
  table.insert(reply, sums[i])
end
if req.micros then
  local missing, worst, worst_spent, worst_reserved = {}, nil, nil, nil
  for i, key in ipairs(req.keys) do
    local found = redis.call('HMGET', base .. 'b:' .. key, 'loaded', 'spent', 'reserved')
    if not found[1] then
      table.insert(missing, i - 1)
    else
      local spent, reserved, limit = tonumber(found[2] or 0), tonumber(found[3] or 0), req.limits[i]
      local short = req.micros > 0 and spent + reserved + req.micros > limit
      -- A budget that is spent comes before one that running requests hold.
      if short and (not worst or (spent + req.micros > limit and worst_spent + req.micros <= req.limits[worst])) then
        worst, worst_spent, worst_reserved = i, spent, reserved
      end
    end
  end
  if #missing > 0 then return {'load', now, unpack(missing)} end
  if worst then
    reply[1] = 'short'
    table.insert(reply, worst - 1)
    table.insert(reply, worst_spent)
    table.insert(reply, worst_reserved)
    return reply
  end
  redis.call('HSET', base .. 'r:' .. req.member, 'micros', req.micros, 'keys', cjson.encode(req.keys))
  redis.call('ZADD', base .. 'leases', now + LEASE, req.member)
  keep('r:' .. req.member)
  keep('leases')
  reserve(req.keys, req.micros)
  for _, key in ipairs(req.keys) do
    local found = redis.call('HMGET', base .. 'b:' .. key, 'spent', 'reserved')
    for i = 1, 2 do table.insert(reply, tonumber(found[i] or 0)) end
  end
end
for i, rate in ipairs(req.rates) do count(rate.counter, starts[i], sums[i]) end
if req.slots then hold(req.slots, req.member) end
return reply
`;

/** Raises a reservation, if that fits. */
const RAISE = `${PRELUDE}${CHECK}${FUNCTIONS}
local old = tonumber(redis.call('HGET', base .. 'r:' .. req.member, 'micros'))
if not old then return {'unknown', now} end
local more = req.micros - old
if more <= 0 then return {'taken', now} end
for i, key in ipairs(req.keys) do
  local found = redis.call('HMGET', base .. 'b:' .. key, 'loaded', 'spent', 'reserved')
  if not found[1] or tonumber(found[2] or 0) + tonumber(found[3] or 0) + more > req.limits[i] then return {'short', now} end
end
redis.call('HSET', base .. 'r:' .. req.member, 'micros', req.micros)
reserve(req.keys, more)
return {'taken', now}
`;

/**
 * Ends requests. Windows are read again when the ledger may have the charge already: of a reservation that is not known, because it was
 * made while Redis was away, of an ending that was sent late, and after the ledger was just read.
 */
const END = `${PRELUDE}${CHECK}${FUNCTIONS}
for _, ending in ipairs(req.endings) do
  if ending.slots then redis.call('ZREM', base .. 's:' .. ending.slots, ending.member) end
  for _, correction in ipairs(ending.corrections) do
    local start, used = counter(correction.counter)
    if start == correction.period or correction.by > 0 then
      count(correction.counter, start, math.max(0, used + correction.by))
    end
  end
  if ending.charged then
    local id = base .. 'r:' .. ending.member
    local held = redis.call('HMGET', id, 'micros', 'done', 'keys')
    if not held[2] then
      local keys = held[3] and cjson.decode(held[3]) or ending.keys
      if held[1] then reserve(keys, -tonumber(held[1])) end
      for _, key in ipairs(keys) do
        local window = base .. 'b:' .. key
        redis.call('HINCRBY', window, 'spent', ending.charged)
        local found = redis.call('HMGET', window, 'loading', 'reload')
        if found[1] then redis.call('HINCRBY', window, 'delta', ending.charged) end
        redis.call('PEXPIRE', window, IDLE)
        if not held[1] or ending.late or (ending.charged ~= 0 and tonumber(found[2] or 0) > now) then mark(key, now) end
      end
      redis.call('ZREM', base .. 'leases', ending.member)
      redis.call('DEL', id)
      redis.call('HSET', id, 'done', 1)
      redis.call('PEXPIRE', id, ${DONE_MS})
    end
  end
end
return {'taken', now}
`;

/** Keeps what running requests hold, and adds what is missing: after a restart, or of requests that were admitted without Redis. */
const RENEW = `${PRELUDE}${CHECK}${FUNCTIONS}
for _, lease in ipairs(req.leases) do
  if lease.slots then hold(lease.slots, lease.member) end
  if lease.micros then
    local id = base .. 'r:' .. lease.member
    local held = redis.call('HMGET', id, 'micros', 'done')
    if not held[2] then
      redis.call('ZADD', base .. 'leases', now + LEASE, lease.member)
      keep('leases')
      local more = lease.micros - tonumber(held[1] or 0)
      if not held[1] then redis.call('HSET', id, 'keys', cjson.encode(lease.keys)) end
      if more ~= 0 or not held[1] then
        redis.call('HSET', id, 'micros', lease.micros)
        reserve(lease.keys, more)
      end
      keep('r:' .. lease.member)
    end
  end
end
return {'taken', now}
`;

/**
 * A node takes part in the current epoch, or starts one: when Redis is empty, or another run of the server, whose data may be
 * old. Requests are admitted when all expected nodes have joined, and those that run are reserved again.
 */
const JOIN = `${PRELUDE}
local found = redis.call('HMGET', KEYS[1], 'epoch', 'run', 'ready')
local epoch, ready = found[1], tonumber(found[3] or 0)
if not epoch or (req.run ~= '' and found[2] ~= req.run) then
  epoch, ready = req.epoch, now + ${REBUILD_MS}
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'run', req.run, 'ready', ready)
end
base = req.prefix .. epoch .. ':'
redis.call('ZADD', base .. 'nodes', now, req.node)
local is_new = redis.call('SADD', base .. 'joined', req.node) == 1
keep('nodes')
keep('joined')
if is_new and ready > now then
  local all = redis.call('SCARD', base .. 'joined') >= req.nodes
  ready = all and now + ${QUIET_MS} or math.max(ready, now + ${QUIET_MS})
  redis.call('HSET', KEYS[1], 'ready', ready)
end
return {'taken', now, epoch, ready}
`;

/** A sign of life. Returns how many nodes are alive, and windows to read from the ledger again. */
const BEAT = `${PRELUDE}${CHECK}${FUNCTIONS}
prune()
redis.call('ZADD', base .. 'nodes', now, req.node)
redis.call('ZREMRANGEBYSCORE', base .. 'nodes', '-inf', now - ${ALIVE_MS})
keep('nodes')
keep('joined')
local reply = {'taken', now, redis.call('ZCARD', base .. 'nodes')}
for _, key in ipairs(redis.call('ZRANGE', base .. 'dirty', 0, 9)) do
  local window = base .. 'b:' .. key
  if redis.call('HEXISTS', window, 'loaded') == 0 then
    redis.call('ZREM', base .. 'dirty', key)
  elseif tonumber(redis.call('HGET', window, 'reload') or 0) <= now then
    redis.call('HSET', window, 'reload', now + ${RELOAD_MS})
    table.insert(reply, key)
  end
end
return reply
`;

/** Before windows are read from the ledger: from here on, what is charged is noted in \`delta\`. */
const BEGIN = `${PRELUDE}${CHECK}
for _, key in ipairs(req.keys) do
  local window = base .. 'b:' .. key
  if redis.call('HSETNX', window, 'loading', now) == 1 then redis.call('HSET', window, 'delta', 0) end
  redis.call('PEXPIRE', window, IDLE)
end
return {'taken', now}
`;

/**
 * What the ledger has of windows. What was charged meanwhile is added, though the ledger may have it already: a budget is
 * never too high, and such a window is read again later.
 */
const COMMIT = `${PRELUDE}${CHECK}${FUNCTIONS}
for i, key in ipairs(req.keys) do
  local window = base .. 'b:' .. key
  local found = redis.call('HMGET', window, 'loaded', 'loading', 'delta')
  if found[2] and (req.again or not found[1]) then
    local delta = tonumber(found[3] or 0)
    redis.call('HSET', window, 'spent', req.spent[i] + delta, 'loaded', 1)
    -- What has ended before an epoch began may have been written after its first read.
    if not found[1] and now < tonumber(state[2] or 0) + ${QUIET_MS} then mark(key, now + ${RELOAD_MS}) end
    local till = tonumber(redis.call('ZSCORE', base .. 'dirty', key) or 0)
    if delta ~= 0 then mark(key, now) elseif till <= now then redis.call('ZREM', base .. 'dirty', key) end
  end
  if found[2] then redis.call('HDEL', window, 'loading', 'delta') end
end
return {'taken', now}
`;

/** Whether windows are loaded, what they have spent, and what is reserved. */
const READ = `${PRELUDE}${CHECK}
local reply = {'taken', now}
for _, key in ipairs(req.keys) do
  local found = redis.call('HMGET', base .. 'b:' .. key, 'loaded', 'spent', 'reserved')
  for i = 1, 3 do table.insert(reply, tonumber(found[i] or 0)) end
end
return reply
`;

/** All scripts. */
export const SCRIPTS = {
  take: TAKE,
  raise: RAISE,
  end: END,
  renew: RENEW,
  join: JOIN,
  beat: BEAT,
  begin: BEGIN,
  commit: COMMIT,
  read: READ,
} as const satisfies Record<Operation, string>;
