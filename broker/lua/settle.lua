-- Settle many entries of one shard, each wholly or not at all; then take for whom has room.
-- Returns 1 or 0 for each, the time in milliseconds, and the entries taken by each who wanted some:
-- what was sent by this very call alone comes back as the place of its settlement and its deadline.
-- ARGV as `unfold` reads them. After the shard: number of wants, for each role, consumer and places.
-- Then for each entry: ARGV kind, number of keys, number of arguments, then what the kind says.
-- Every kind: ARGV role, id, consumer, count, name, journal entries (number, then kind and JSON);
-- KEYS record, journal; kinds that may close add order, conversation, tombstone, frames.
-- Each send: role, form, frame; a form other than 'whole' adds which kept frame it is based on, and
-- 'kept', which keeps this frame for the part that follows it, also KEYS frames.

unfold()
local shard = read_shard()
local settle = {}
local done, sent = {}, {}

-- A frame that is kept is written once; what changes after it travels alone.
local function keep_frame(frames, base, frame, deadline)
  redis.call('HSET', frames, base, frame)
  redis.call('PEXPIREAT', frames, whole(tonumber(deadline) + tonumber(shard.ttl)))
end

local function send(name, record)
  local sends = tonumber(arg())
  for _ = 1, sends do
    local stream, form, frame = shard.streams[arg()], arg(), arg()
    local id
    if form == 'whole' then
      id = redis.call('XADD', stream, '*', 'q', name, 'f', frame, 'd', record[2],
        'l', record[3], 'n', '0')
    else
      local base = arg()
      if form == 'kept' then
        keep_frame(key(), base, frame, record[2])
        frame = '{}'
      end
      id = redis.call('XADD', stream, '*', 'q', name, 'p', frame, 'b', base, 'd', record[2],
        'l', record[3], 'n', '0')
    end
    if sends == 1 then
      sent[stream .. id] = { #done + 1, record[2] }
    end
  end
  return sends
end

function settle.forward(question, record)
  local resort, outcome = arg(), arg()
  if resort ~= '' then
    redis.call('HSET', question.record, 'lr', resort, 'lo', outcome)
  end
  send(question.name, record)
end

function settle.retry(question, record)
  local frame, role, id, failures, delay = arg(), arg(), arg(), arg(), tonumber(arg())
  local token = 'r ' .. id .. ' ' .. role .. ' ' .. failures .. ' ' .. question.name
  local due = math.min(now_ms() + delay, tonumber(record[2]))
  redis.call('HSET', shard.parked, token, frame)
  put_off(shard, token, whole(due))
end

-- The writes of one question; skipped, but read, when the conversation was forgotten meanwhile.
local memory = {}

function memory.append(name, ttl, values, keep)
  redis.call('RPUSH', name, unpack(values))
  redis.call('LTRIM', name, -tonumber(keep), -1)
  redis.call('EXPIRE', name, ttl)
end

function memory.set_fields(name, ttl, values)
  redis.call('HSET', name, unpack(values))
  redis.call('EXPIRE', name, ttl)
end

function memory.increment(name, ttl, values)
  for i = 1, #values, 2 do
    redis.call('HINCRBYFLOAT', name, values[i], values[i + 1])
  end
  redis.call('EXPIRE', name, ttl)
end

function memory.delete(name)
  redis.call('DEL', name)
end

local function remember(question, allowed)
  for _ = 1, tonumber(arg()) do
    local kind, name, ttl, keep, values = arg(), key(), arg(), arg(), {}
    for i = 1, tonumber(arg()) do
      values[i] = arg()
    end
    if allowed and (#values > 0 or kind == 'delete') then
      -- A key of another type must not stop a settlement half way: it is noted, and left.
      local fine, problem = pcall(memory[kind], name, ttl, values, keep)
      if not fine then
        local told = type(problem) == 'table' and problem.err or tostring(problem)
        redis.call('XADD', question.journal, '*', 'k', 'memory_failed', 'j',
          cjson.encode({ key = name, error = told }))
      end
    end
  end
end

-- KEYS for each forgotten message: record, journal, result list. What is open stays.
local function forget(own)
  for _ = 1, tonumber(arg()) do
    local record, journal, results = key(), key(), key()
    if redis.call('HEXISTS', record, 'o') == 1 and record ~= own then
      forget_words(shard, record, journal, results)
    end
  end
end

local function leave_tombstone(question)
  local time = redis.call('TIME')
  local last = redis.call('ZRANGE', shard.deadlines, -1, -1, 'WITHSCORES')
  redis.call('SET', question.tombstone, time[1] .. string.format('%06d', tonumber(time[2])))
  redis.call('PEXPIREAT', question.tombstone, whole(tonumber(last[2] or now_ms()) + 60000))
end

function settle.finish(question, record)
  local outcome, reply, forgets = arg(), arg(), arg()
  local results = key()
  local tombstone = redis.call('GET', question.tombstone)
  local accepted, tenant = unpack(redis.call('HMGET', question.record, 'at', 't'))
  remember(question, not tombstone or tonumber(accepted) > tonumber(tombstone))
  if forgets ~= '' then
    leave_tombstone(question)
    forget(question.record)
  end
  close(shard, question, tenant, record[3] ~= '' and results or nil, outcome, reply, now_ms())
end

function settle.bury(question, record)
  local frame, role, reason, problem = arg(), arg(), arg(), arg()
  local told = { arg(), arg(), arg(), arg() }
  local results = key()
  bury(shard, question, frame, role, reason, problem, told)
  if send(question.name, record) > 0 then
    return
  end
  results = record[3] ~= '' and results or nil
  local tenant, reply, outcome = unpack(redis.call('HMGET', question.record, 't', 'lr', 'lo'))
  close(shard, question, tenant, results, outcome, reply, now_ms())
end

local function settle_one(kind)
  local role, id, consumer, count, name = arg(), arg(), arg(), arg(), arg()
  local stream = shard.streams[role]
  if not holds(stream, id, consumer, count) then
    return 0
  end
  redis.call('XACK', stream, GROUP, id)
  redis.call('XDEL', stream, id)
  local question = { name = name, record = key(), journal = key() }
  local record = redis.call('HMGET', question.record, 'o', 'd', 'l')
  if record[1] or not record[2] then
    return 0
  end
  if kind == 'finish' or kind == 'bury' then
    question.order, question.conversation = key(), key()
    question.tombstone, question.frames = key(), key()
  end
  for _ = 1, tonumber(arg()) do
    redis.call('XADD', question.journal, '*', 'k', arg(), 'j', arg())
  end
  settle[kind](question, record)
  return 1
end

local wants = {}
for place = 1, tonumber(arg()) do
  wants[place] = { role = arg(), consumer = arg(), places = arg() }
end

-- A group that is gone is made again by whoever waits for it: here it gives nothing.
local function take(want)
  local stream = shard.streams[want.role]
  local read = redis.pcall('XREADGROUP', 'GROUP', GROUP, want.consumer, 'COUNT', want.places,
    'STREAMS', stream, '>')
  local entries = read and not read.err and read[1] and read[1][2] or {}
  for _, entry in ipairs(entries) do
    entry[2] = sent[stream .. entry[1]] or entry[2]
  end
  return entries
end

local last = #args
while next_arg < last do
  local kind, keys, own = arg(), arg(), arg()
  local key_end, arg_end = next_key + keys, next_arg + own
  done[#done + 1] = settle_one(kind)
  -- What is refused is not read to its end.
  while next_arg < arg_end do
    arg()
  end
  next_key = key_end
end
local taken = {}
for place, want in ipairs(wants) do
  taken[place] = take(want)
end
return { done, whole(now_ms()), taken }
