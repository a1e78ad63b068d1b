-- Settle many entries of one shard, each wholly or not at all; then take for whom has room.
-- Returns 1 or 0 for each, the time in milliseconds, and the entries taken by each who wanted some:
-- what was sent by this very call alone comes back as the place of its settlement and its deadline.
-- ARGV as `unfold` reads them. After the shard: number of wants, for each role, consumer and places.
-- Then a list for each entry: kind, number of keys, role, id, consumer, count, name, how much the
-- journal is told (number, then the fields of its entry), then what the kind says.
-- KEYS of every kind: record, journal; kinds that may close add order, conversation, tombstone,
-- frames.
-- Each send: role, form, frame; a form other than 'whole' adds which kept frame it is based on, and
-- 'kept', which keeps this frame for the part that follows it, also KEYS frames.

-- Of one journal entry: Lua hands over no more than some thousands at once.
local MOST_FIELDS = 1000
local GOING_ON = { 'o', 'd', 'l' }
local CLOSING = { 'o', 'd', 'l', 'at', 't', 'lr', 'lo', 'k' }

unfold()
local shard = read_shard()
local settle = {}
local done = {}

-- A frame that is kept is written once; what changes after it travels alone.
local function keep_frame(frames, base, frame, deadline)
  redis.call('HSET', frames, base, frame) -- rule: base-frame-is-kept
  redis.call('PEXPIREAT', frames, whole(tonumber(deadline) + tonumber(shard.ttl)))
end

local function send(name, record)
  local sends = tonumber(arg())
  for _ = 1, sends do
    local stream, form, frame = shard.streams[arg()], arg(), arg()
    local fields
    if form == 'whole' then
      fields = { 'q', name, 'f', frame, 'd', record[2], 'l', record[3], 'n', '0' }
    else
      local base = arg()
      if form == 'kept' then
        keep_frame(key(), base, frame, record[2])
        frame = '{}'
      end
      fields = { 'q', name, 'p', frame, 'b', base, 'd', record[2], 'l', record[3], 'n', '0' }
    end
    put(shard, stream, fields, sends == 1 and { #done + 1, record[2] }) -- rule: each-send-adds-one-entry
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
  local due = now_ms() + delay
  due = math.min(due, tonumber(record[2])) -- rule: retry-comes-by-the-deadline
  redis.call('HSET', shard.parked, token, frame)
  put_off(shard, token, whole(due))
end

-- The writes of one question; skipped, but read, when the conversation was forgotten meanwhile.
local memory = {}

function memory.append(name, ttl, values, keep)
  if redis.call('RPUSH', name, unpack(values)) > tonumber(keep) then
    redis.call('LTRIM', name, -tonumber(keep), -1)
  end
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
      forget_words(record, journal, results)
    end
  end
end

function settle.finish(question, record)
  local outcome, reply, forgets = arg(), arg(), arg()
  local results = key()
  local tombstone = redis.call('GET', question.tombstone)
  remember(question, not tombstone or tonumber(record[4]) > tonumber(tombstone))
  if forgets ~= '' then
    leave_tombstone(shard, question.tombstone)
    forget(question.record)
    forget_letters(shard, string.match(question.name, '^(.*)/'))
  end
  close(shard, question, record[5], record[3] ~= '' and results or nil, outcome, reply, now_ms())
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
  close(shard, question, record[5], results, record[7], record[6], now_ms())
end

-- Of an entry that is held: tell the journal, and do what its kind says.
local function settle_one(one)
  local kind, name, told = one[1], one[7], one[8]
  local question = { name = name, record = key(), journal = key() }
  local closes = kind == 'finish' or kind == 'bury'
  local record = redis.call('HMGET', question.record, unpack(closes and CLOSING or GOING_ON))
  if record[1] or not record[2] then -- rule: closed-question-stays-closed
    return 0
  end
  if closes then
    question.order, question.conversation = key(), key()
    question.tombstone, question.frames = key(), key()
    question.keep = record[8]
  end
  for first = 9, 8 + told, MOST_FIELDS do
    redis.call('XADD', question.journal, '*',
      unpack(one, first, math.min(first + MOST_FIELDS - 1, 8 + told)))
  end
  read(one, 8 + told)
  settle[kind](question, record)
  return 1
end

-- Take what is held off its streams, all entries of a stream at once; return which were held.
local function take_off(lists)
  local held, by_stream = {}, {}
  for place, one in ipairs(lists) do
    local stream, id = shard.streams[one[3]], one[4]
    local ids = by_stream[stream] or {}
    by_stream[stream] = ids
    if not ids[id] and holds(stream, id, one[5], one[6]) then
      held[place] = true
      ids[id] = true
      ids[#ids + 1] = id
    end
  end
  for stream, ids in pairs(by_stream) do
    if #ids > 0 then
      redis.call('XACK', stream, GROUP, unpack(ids)) -- rule: settled-entry-is-acknowledged
      redis.call('XDEL', stream, unpack(ids)) -- rule: settled-entry-leaves-stream
    end
  end
  return held
end

local taken = {}
for place = 1, tonumber(arg()) do
  local stream, consumer, places = shard.streams[arg()], arg(), arg()
  taken[place] = want(shard, stream, consumer, places).entries
end
local lists = {}
for place = next_arg + 1, #args do
  lists[#lists + 1] = args[place]
end
local held, problem = take_off(lists), nil
for place, one in ipairs(lists) do
  local key_end = next_key + one[2]
  local fine, told = true, 0
  if held[place] then
    -- What stops one, a key of another type maybe, stops none of the others.
    fine, told = pcall(settle_one, one)
  end
  done[place] = fine and told or 0
  problem = problem or not fine and told
  -- The keys of what is refused are not read to their end.
  next_key = key_end
end
if problem then
  error(problem)
end
deliver(shard)
return { done, whole(now_ms()), taken }
