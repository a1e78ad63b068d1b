-- Send due items. Each is checked again here, because several processes may send them at once.
-- KEYS: shard, duty. ARGV after the shard: the sender; then for each item: 'retry' token name role failures (KEYS record)
--                               | 'start' name (KEYS as closing)
--                               | 'join' join role name (KEYS record, frames) | 'deadline' name (KEYS as closing, results).

local shard = read_shard()
local duty, me = key(), arg()
local now = now_ms()
local due = {}

local function is_due(zset, member)
  local score = redis.call('ZSCORE', zset, member)
  return score and tonumber(score) <= now -- rule: due-time-is-kept
end

function due.retry()
  local token, name, role, failures, record = arg(), arg(), arg(), arg(), key()
  if not is_due(shard.delayed, token) then
    return 0
  end
  local frame = redis.call('HGET', shard.parked, token)
  redis.call('ZREM', shard.delayed, token)
  redis.call('HDEL', shard.parked, token) -- rule: sent-retry-is-unparked
  local known = redis.call('HMGET', record, 'o', 'd', 'l')
  if known[1] or not known[2] or not frame then -- rule: closed-question-is-not-retried
    return 0
  end
  redis.call('XADD', shard.streams[role], '*', 'q', name, 'f', frame, 'd', known[2],
    'l', known[3], 'n', failures)
  return 1
end

function due.start()
  local question = read_question(arg())
  if not is_due(shard.delayed, 's ' .. question.name) then
    return 0
  end
  redis.call('ZREM', shard.delayed, 's ' .. question.name)
  start(shard, question, question.name, now)
  return 1
end

function due.join()
  local join, role, question = arg(), arg(), { name = arg(), record = key(), frames = key() }
  local token = name_deadline(question, join, role)
  if not is_due(shard.delayed, token) then
    return 0
  end
  redis.call('ZREM', shard.delayed, token)
  local known = redis.call('HMGET', question.record, 'o', 'd', 'l')
  local waiting = redis.call('HGET', question.frames, 'n:' .. join)
  if known[1] or not known[2] or not waiting then
    return 0
  end
  local until_ms = find_due(question, join, known[2])
  if not until_ms then
    take_join(question, join)
    return 0
  end
  go_on(shard, question, join, read_join(waiting), until_ms, known[3])
  return 1
end

function due.deadline()
  local question, results = read_question(arg()), key()
  if not is_due(shard.deadlines, question.name) then
    return 0
  end
  local known = redis.call('HMGET', question.record, 'o', 't', 'l', 'lr', 'lo', 'k')
  question.keep = known[6]
  if known[1] or not known[4] then
    -- The record has ended or expired: remove what refers to it.
    forget_open(shard, question, known[2])
    leave_order(shard, question, now)
    return 0
  end
  results = known[3] ~= '' and results or nil
  close(shard, question, known[2], results, known[5], last_resort(known[4], AT_DEADLINE), now)
  return 1
end

redis.call('HSET', duty, 'timer', me)
redis.call('PEXPIRE', duty, shard.ttl)
local sent = 0
while next_arg < #ARGV do
  sent = sent + due[arg()]()
end
return sent
