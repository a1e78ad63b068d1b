-- Functions of every script that ends questions or starts waiting messages.

-- KEYS: the eight keys of the shard. ARGV: the most dead letters, and their time to live (ms).
local function read_whole(shard)
  shard.deadlines, shard.open, shard.dead, shard.delayed = key(), key(), key(), key()
  shard.parked, shard.notices, shard.alarms, shard.letters = key(), key(), key(), key()
  shard.cap, shard.letters_ttl = arg(), arg()
  return shard
end

local function read_shard()
  return read_whole(read_streams())
end

local function read_question(name)
  return {
    name = name, record = key(), journal = key(), order = key(), conversation = key(),
    tombstone = key(), frames = key(),
  }
end

-- Wake the sleeping timers if this due time is now the earliest in its set.
local function alarm(shard, zset, member, due)
  if redis.call('ZRANGE', zset, '0', '0')[1] == member then -- rule: earliest-due-time-wakes-timer
    redis.call('XADD', shard.alarms, 'MAXLEN', '16', '*', 'd', due)
    redis.call('PEXPIRE', shard.alarms, shard.ttl)
  end
end

local function put_off(shard, member, due)
  redis.call('ZADD', shard.delayed, due, member)
  alarm(shard, shard.delayed, member, due)
end

local function drop_waiting(question, name)
  local frames = redis.call('HGET', question.conversation, name .. ':merged')
  if not frames then
    return
  end
  local fields = { name .. ':stream', name .. ':frame', name .. ':deadline', name .. ':at',
    name .. ':merged', name .. ':list' }
  for i = 1, tonumber(frames) do
    fields[#fields + 1] = name .. ':m' .. i
  end
  redis.call('HDEL', question.conversation, unpack(fields))
end

-- Send a waiting message to the watch branch of the running question, if there is one. `role` is the
-- role that receives new messages. Fields of a conversation's hash, by name of the message:
-- <name>:watch of a running question contains the deadline of the watch (ms), the result list and the
-- frame, each on a line; the other fields belong to waiting messages, see `start`.
local function show(shard, question, running, role, frame)
  local watch = redis.call('HGET', question.conversation, running .. ':watch')
  local due, list, looks = string.match(watch or '', '^([^\n]*)\n([^\n]*)\n(.*)$')
  if due then
    put(shard.streams[role], { 'q', running, 'f', looks, 'd', due, 'l', list, 'n', '0',
      'm1', frame }) -- rule: waiting-message-is-shown
  end
end

-- Send the next waiting message of a conversation, or delay it if its start time has not come.
local function start(shard, question, name, now)
  local stem = name .. ':'
  local found = redis.call('HMGET', question.conversation, stem .. 'stream', stem .. 'frame',
    stem .. 'deadline', stem .. 'at', stem .. 'merged', stem .. 'list')
  if not found[1] then
    return
  end
  if tonumber(found[4]) > now then
    put_off(shard, 's ' .. name, found[4])
    return
  end
  local fields = { 'q', name, 'f', found[2], 'd', found[3], 'l', found[6], 'n', '0' }
  for i = 1, tonumber(found[5]) do
    fields[#fields + 1] = 'm' .. i
    fields[#fields + 1] = redis.call('HGET', question.conversation, stem .. 'm' .. i)
  end
  put(found[1], fields)
  drop_waiting(question, name)
end

-- Notify the processes that wait for outcomes. A notice is only a hint; the journal is authoritative.
local function notice(shard, name)
  redis.call('XADD', shard.notices, 'MAXLEN', '~', '100000', '*', 'q', name)
  if not shard.noticed then
    redis.call('PEXPIRE', shard.notices, shard.ttl)
    shard.noticed = true
  end
end

local function forget_open(shard, question, tenant)
  redis.call('ZREM', shard.deadlines, question.name)
  if tenant and redis.call('HINCRBY', shard.open, tenant, '-1') <= 0 then -- rule: closed-question-leaves-quota
    redis.call('HDEL', shard.open, tenant)
  end
end

local function leave_order(shard, question, now)
  local first = redis.call('LINDEX', question.order, '0')
  redis.call('LREM', question.order, '1', question.name)
  if redis.call('EXISTS', question.conversation) == 0 then
    return
  end
  drop_waiting(question, question.name)
  redis.call('HDEL', question.conversation, question.name .. ':watch') -- rule: watch-ends-with-question
  redis.call('ZREM', shard.delayed, 's ' .. question.name)
  local following = first == question.name and redis.call('LINDEX', question.order, '0')
  if following then -- rule: next-message-of-conversation-starts
    start(shard, question, following, now)
  end
end

-- End an open question with its final reply, and start the next message of its conversation.
-- `results` is the key of its result list, or nil; `question.keep` is its time to live (ms), or nil.
local function close(shard, question, tenant, results, outcome, reply, now)
  local changes = { 'o', outcome }
  if results then
    changes[3] = 'ri'
    changes[4] = redis.call('XADD', results, '*', 'q', question.name, 'o', outcome, 'j', reply)
    redis.call('PEXPIRE', results, shard.ttl) -- rule: result-list-expires
  end
  redis.call('HSET', question.record, unpack(changes))
  redis.call('HDEL', question.record, 'lr', 'lo')
  redis.call('DEL', question.frames) -- rule: base-frames-end-with-question
  redis.call('XADD', question.journal, '*', 'k', 'finished', 'j', reply)
  redis.call('PEXPIRE', question.record, question.keep or shard.ttl)
  redis.call('PEXPIRE', question.journal, question.keep or shard.ttl)
  notice(shard, question.name)
  forget_open(shard, question, tenant)
  leave_order(shard, question, now)
end

-- Return the reply of a question that no worker ended: part 2 is for a missed deadline, part 3 for a
-- dead letter. A reply without line breaks serves both.
local AT_DEADLINE, OF_DEAD_LETTER = 2, 3
local function last_resort(stored, which)
  local parts = { string.match(stored, '^([^\n]*)\n([^\n]*)\n([^\n]*)$') }
  return parts[1] and parts[1] .. parts[which] or stored
end

local function drop_letter(shard, id)
  redis.call('HDEL', shard.letters, id, id .. ':error')
  return redis.call('XDEL', shard.dead, id)
end

-- Add a dead letter. `delivery` lists the attempts, the last worker, when the hop was queued (ms), and
-- the workers that died while holding it. User text is stored in a hash, because a deleted stream entry
-- stays in memory and in the append-only file until its whole stream node is deleted.
local function bury(shard, question, frame, role, reason, problem, delivery)
  local accepted = question.record and redis.call('HGET', question.record, 'at') or '0'
  local id = redis.call('XADD', shard.dead, '*', 'q', question.name, 'role', role, 'reason', reason,
    'attempts', delivery[1], 'worker', delivery[2], 'queued', delivery[3], 'deaths', delivery[4],
    'accepted', accepted or '0')
  redis.call('HSET', shard.letters, id, frame, id .. ':error', problem)
  local surplus = redis.call('XLEN', shard.dead) - tonumber(shard.cap)
  if surplus > 0 then
    for _, entry in ipairs(redis.call('XRANGE', shard.dead, '-', '+', 'COUNT', surplus)) do
      drop_letter(shard, entry[1])
    end
  end
  redis.call('PEXPIRE', shard.dead, shard.letters_ttl)
  redis.call('PEXPIRE', shard.letters, shard.letters_ttl)
end

-- Delete the dead letters of the question or conversation `stem`.
local function forget_letters(shard, stem)
  local dropped = 0
  for _, entry in ipairs(redis.call('XRANGE', shard.dead, '-', '+')) do
    for i = 1, #entry[2], 2 do
      local name = entry[2][i] == 'q' and entry[2][i + 1]
      if name and (name == stem or string.sub(name, 1, #stem + 1) == stem .. '/') then
        dropped = dropped + drop_letter(shard, entry[1])
      end
    end
  end
  return dropped
end

-- Delete the text of a closed question; its record stays, so that it cannot be accepted again.
local function forget_words(record, journal, results)
  local entry = redis.call('HGET', record, 'ri')
  redis.call('DEL', journal) -- rule: forgotten-journal-is-deleted
  if entry then
    redis.call('XDEL', results, entry)
    redis.call('HDEL', record, 'ri')
  end
end

-- Reject later memory writes of questions that were accepted before now.
local function leave_tombstone(shard, tombstone)
  local time = redis.call('TIME')
  local last = redis.call('ZRANGE', shard.deadlines, -1, -1, 'WITHSCORES')
  redis.call('SET', tombstone, time[1] .. string.format('%06d', tonumber(time[2])))
  redis.call('PEXPIREAT', tombstone, whole(tonumber(last[2] or now_ms()) + 60000))
end
