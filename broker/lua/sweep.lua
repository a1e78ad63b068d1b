-- Return the entries of dead workers to their streams, where any consumer can take them.
-- One process at a time sweeps a shard: it stores until when, and the others try again after that.
-- A consumer that holds entries and was idle for a lease is dead: a live one renews. Entries that a live
-- consumer never received (the response was lost) are found by scanning all pending entries, a bounded
-- number at a time, starting where the last scan ended.
-- KEYS: duty, then the streams. ARGV: sweeper, lease (ms), idle time (ms) after which a consumer without
-- entries is removed, the most entries to scan, the most entries to return, the most starts, ttl (ms),
-- then the roles.
-- Returns {ms until the next sweep, 1 if this process swept, {{role, entry, count, consumer}}: entries
-- with too many starts, which the caller buries in the name of their last consumer}.

local duty, me = KEYS[1], ARGV[1]
local lease, silence, looks = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local moves, starts, ttl = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local FIRST_ROLE = 8
local roles = #ARGV - FIRST_ROLE + 1
local now = now_ms()

local known = redis.call('HMGET', duty, 'sweeper', 'until', 'role', 'after')
if known[1] and known[1] ~= me and tonumber(known[2]) > now then
  return { whole(tonumber(known[2]) - now), 0, {} }
end

local wait, poison = lease, {}

-- A paused process starts nothing, but its blocked reads still take returned entries, one for each of
-- its consumers (<process>-<instance>). So a process counts as one death, and each of its consumers may
-- hold the entry once more without counting; `idle` names the consumers that did.
local function takes_by_open_read(consumer, deaths, idle)
  local process = string.match(consumer, '^(.+%-)%d+$')
  if not process or string.find(' ' .. idle, ' ' .. consumer .. ' ', 1, true) then
    return false
  end
  for dead in string.gmatch(deaths, '(%S+)@') do
    if string.match(dead, '^(.+%-)%d+$') == process then
      return true
    end
  end
  return false
end

-- Return a pending entry to its stream. `row` is one of XPENDING: id, consumer, idle (ms), deliveries.
local function give_back(stream, role, row)
  local id, entry = row[1], redis.call('XRANGE', stream, row[1], row[1])[1]
  if not entry then
    redis.call('XACK', stream, GROUP, id)
    return
  end
  local fields, started, deaths, idle = {}, row[4], '', ''
  for i = 1, #entry[2], 2 do
    local name, value = entry[2][i], entry[2][i + 1]
    if name == 'c' then
      -- A value that is not a number is malformed; the consumer that takes the entry buries it.
      started = started + (tonumber(value) or 0) -- rule: starts-survive-return
    elseif name == 'h' then
      deaths = value .. ' '
    elseif name == 'x' then
      idle = value .. ' '
    else
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
  end
  if takes_by_open_read(row[2], deaths, idle) then
    started, idle = started - row[4], idle .. row[2] .. ' '
  else
    deaths = deaths .. row[2] .. '@' .. whole(now - row[3]) .. ' '
  end
  -- A buried entry keeps its delivery count, so its own starts are not added here.
  local spent = started >= starts -- rule: starts-are-bounded
  fields[#fields + 1] = 'c'
  fields[#fields + 1] = tostring(spent and started - row[4] or started)
  fields[#fields + 1] = 'h'
  fields[#fields + 1] = string.sub(deaths, 1, -2)
  if idle ~= '' then
    fields[#fields + 1] = 'x'
    fields[#fields + 1] = string.sub(idle, 1, -2)
  end
  if spent then
    -- It stays with its last consumer: if this sweeper dies now, the next one returns it again.
    redis.call('XCLAIM', stream, GROUP, row[2], 0, id, 'JUSTID')
    poison[#poison + 1] = { role, { id, fields }, row[4], row[2] }
    return
  end
  redis.call('XACK', stream, GROUP, id) -- rule: returned-entry-leaves-its-place
  redis.call('XDEL', stream, id) -- rule: returned-entry-leaves-its-place
  redis.call('XADD', stream, '*', unpack(fields))
end

local function look_at(stream, role, rows)
  for _, row in ipairs(rows) do
    if row[3] < lease then -- rule: renewed-lease-is-respected
      wait = math.min(wait, lease - row[3])
    elseif moves > 0 then
      moves = moves - 1
      give_back(stream, role, row)
    end
  end
end

local function sweep_consumers(stream, role)
  local rows = redis.pcall('XINFO', 'CONSUMERS', stream, GROUP)
  if rows.err then
    return false
  end
  for _, row in ipairs(rows) do
    local consumer = {}
    for i = 1, #row, 2 do
      consumer[row[i]] = row[i + 1]
    end
    if consumer.pending == 0 then
      if consumer.idle > silence then
        redis.call('XGROUP', 'DELCONSUMER', stream, GROUP, consumer.name)
      end
    elseif consumer.idle < lease then
      wait = math.min(wait, lease - consumer.idle)
    elseif moves > 0 then
      look_at(stream, role, redis.call('XPENDING', stream, GROUP, '-', '+', moves, consumer.name))
    end
  end
  return true
end

local present, first, from = {}, 1, '-'
for place = 1, roles do
  local role = ARGV[FIRST_ROLE + place - 1]
  present[place] = sweep_consumers(KEYS[place + 1], role)
  if role == known[3] then
    first, from = place, known[4]
  end
end

-- Scan all streams once, up to the limit of scanned entries.
local next_role, next_after = '', ''
for step = 0, roles - 1 do
  local place = (first - 1 + step) % roles + 1
  local stream, role = KEYS[place + 1], ARGV[FIRST_ROLE + place - 1]
  if present[place] then
    local rows = redis.call('XPENDING', stream, GROUP, from, '+', looks)
    look_at(stream, role, rows)
    looks = looks - #rows
    if looks <= 0 then
      next_role, next_after = role, '(' .. rows[#rows][1]
      wait = math.min(wait, lease / 16)
      break
    end
  end
  from = '-'
end
if moves <= 0 then
  wait = 0
end

redis.call('HSET', duty, 'sweeper', me, 'until', whole(now + wait + lease / 16),
  'role', next_role, 'after', next_after)
redis.call('PEXPIRE', duty, ttl)
return { whole(wait), 1, poison }
