-- Shared by every script. Fields of a stream entry:
--   q name of the question, f frame, d deadline (ms), l result list or '', n failures so far, m1..
--   merged frames, c starts before this delivery, h deaths (worker@ms ..), x consumers of a paused
--   process that held the entry without starting it, g results of a join (branches.lua).
--   Instead of f: p the changes to a base frame, and b the name of that base frame.
-- Fields of a record:
--   at accepted (us), d deadline (ms), t tenant, l result list, lr/lo last resort and its outcome,
--   k time to live after the end (ms; absent: the default), o outcome (absent while open), ri id of
--   the entry in the result list, of the message that this one retries.

local GROUP = 'workers'

-- Returns an integer as text: Redis formats a number as a float, which takes ten times as long.
local function whole(number)
  return string.format('%d', math.floor(number))
end

-- Read the clock once, so that a script has one time.
local moment
local function now_ms()
  if not moment then
    local time = redis.call('TIME')
    moment = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  end
  return moment
end

-- Return the next of KEYS or ARGV.
local next_key, next_arg = 0, 0
local function key()
  next_key = next_key + 1
  return KEYS[next_key]
end
local function arg()
  next_arg = next_arg + 1
  return ARGV[next_arg]
end

-- KEYS: the streams of roles. ARGV: time to live (ms), number of roles, the roles.
local function read_streams()
  local shard = { ttl = arg(), streams = {} }
  for _ = 1, tonumber(arg()) do
    shard.streams[arg()] = key()
  end
  return shard
end

-- Return whether `consumer` holds this delivery of an entry; false if the group does not exist.
local function holds(stream, id, consumer, count)
  local rows = redis.pcall('XPENDING', stream, GROUP, id, id, '1', consumer)
  local row = rows[1]
  return row ~= nil and row[4] == tonumber(count) -- rule: only-the-holder-settles
end

-- Return the join and the deadline (ms) of an open branch (branches.lua). Returns nil if the branch has
-- returned, or its join or that of an enclosing branch has ended.
local function find_branch(frames, path)
  local fields = {}
  for above in string.gmatch(path, '()/') do
    fields[#fields + 1] = 'b:' .. string.sub(path, 1, above - 1)
  end
  fields[#fields + 1] = 'b:' .. path
  local found = redis.call('HMGET', frames, unpack(fields))
  for place = 1, #fields do
    if not found[place] then -- rule: branch-ends-with-its-join
      return nil
    end
  end
  return string.match(found[#fields] or '', '^(%S+) (%d+)$')
end

-- Add an entry to a stream. A consumer that takes it in this call receives `known` instead of its fields.
local added = {}
local function put(stream, fields, known)
  local id = redis.call('XADD', stream, '*', unpack(fields))
  if known then
    added[stream] = added[stream] or {}
    added[stream][id] = known
  end
end

-- Take up to `count` entries of a stream for a consumer, oldest first. Returns none if the group does
-- not exist; readers create it again.
local function take(stream, consumer, count)
  local read = redis.pcall('XREADGROUP', 'GROUP', GROUP, consumer, 'COUNT', count, 'STREAMS', stream, '>')
  local entries = read and not read.err and read[1] and read[1][2] or {}
  local known = added[stream] or {}
  for _, entry in ipairs(entries) do
    entry[2] = known[entry[1]] or entry[2]
  end
  return entries
end
