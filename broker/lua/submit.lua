-- Accept a message once, in order, within the quota and the admission limit of the shard.
-- KEYS: shard, stream; the closing keys; messages, named, results, pace; the prefetched keys.
-- Returns {'accepted', waiting, nil or the taken entry: id, nil or fields, now (ms), nil or the
--          prefetched values} | {'merged', name} | {'duplicate', reply or ''}
--       | {'busy', reason, retry after (ms)}.

local MOST_JOINED, MOST_NAMED = 100, 1000

local shard = read_shard()
local name, tenant, role, frame = arg(), arg(), arg(), arg()
local seconds_ms, resort, resort_outcome = arg(), arg(), arg()
local result_list, delay_ms, accepted = arg(), tonumber(arg()), arg()
local quota, longest, merged_reply = tonumber(arg()), tonumber(arg()), arg()
local retry_of = arg()
-- Time to live after the end of the question (ms), or '' for the default.
local keep_ms = arg()
-- A consumer in the submitting process with a free slot for the role, or ''; the name of the base frame
-- to store if that consumer takes the message now, or ''.
local consumer, base = arg(), arg()
-- With a share of 0 there is no admission control: only the quota limits the shard.
local share, at_least, unknown = tonumber(arg()), tonumber(arg()), tonumber(arg())
local lanes = {}
for _ = 1, tonumber(arg()) do
  lanes[arg()] = true
end
local question = read_question(name)
local messages, named, results, pace_name = key(), key(), key(), key()

if redis.call('EXISTS', question.record) == 1 then -- rule: message-is-accepted-once
  local last = redis.call('XREVRANGE', question.journal, '+', '-', 'COUNT', 1)[1]
  if last and last[2][2] == 'finished' then
    return { 'duplicate', last[2][4] }
  end
  return { 'duplicate', '' }
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local at = time[1] .. string.format('%06d', tonumber(time[2]))
local open = redis.call('ZCARD', shard.deadlines)
local pace = keep_pace(pace_name, shard, now, open, share, at_least, lanes)

local mine = tonumber(redis.call('HGET', shard.open, tenant) or 0)
local tenants = redis.call('HLEN', shard.open) + (mine == 0 and 1 or 0)
local before = redis.call('LLEN', question.order)

-- Rejected clients retry and compete for the slots that become free.
local function busy(reason, ahead)
  pace.refused = redis.call('HINCRBY', pace_name, 'refused', 1)
  local others = math.max(pace.refused, pace.before)
  return { 'busy', reason, whole(wait_for(pace, now, pace['in'] - open, ahead + others, unknown)) }
end

if open >= quota then -- rule: quota-bounds-open-questions
  return busy('shard_full', open - quota)
end
-- Near the quota each tenant gets at most an equal share, because the quota is a hard limit.
local part = math.max(1, math.floor(quota / tenants))
if open * 2 >= quota and mine >= part then
  return busy('tenant_share', (mine - part) * open / mine)
end
if share > 0 and not lanes[role] and open - pace.apart >= pace.limit then
  -- At the limit, only tenants below their share are admitted; some slots are reserved for them.
  local own = pace.limit / tenants
  if mine + 1 > own or open - pace.apart >= pace.limit * (1 + share / 2) then
    return busy(tenants > 1 and mine + 1 > own and 'tenant_share' or 'overload',
      open - pace.apart - pace.limit)
  end
end
-- A delayed message joins the last message of the conversation if that one has not started.
local target, joined
if tonumber(delay_ms) > 0 and before > 0 then
  local last = redis.call('LINDEX', question.order, -1)
  local waits = redis.call('HMGET', question.conversation, last .. ':at', last .. ':merged')
  if waits[1] and waits[1] ~= '0' then
    target, joined = last, tonumber(waits[2])
  end
end
if before > longest or target and joined >= MOST_JOINED then
  -- Suggest the time until the open questions end, since the first of the conversation must end.
  return { 'busy', 'conversation_full',
    whole(wait_for(pace, now, pace['in'] - open, open, unknown)) }
end

local deadline = now + tonumber(seconds_ms)
local kept_ms = tonumber(keep_ms == '' and shard.ttl or keep_ms)
local deadline_text, keep_until = whole(deadline), deadline + kept_ms
local keep_text = whole(keep_until)
local start_at = delay_ms > 0 and now + delay_ms or 0

-- Extend the time to live of a key of the conversation, never shorten it.
local function keep(name)
  if redis.call('PTTL', name) < keep_until - now then
    redis.call('PEXPIREAT', name, keep_text)
  end
end

redis.call('HSET', question.record, 'at', at, 'd', deadline_text, 't', tenant, 'l', result_list,
  'lr', resort, 'lo', resort_outcome)
if keep_ms ~= '' then
  redis.call('HSET', question.record, 'k', keep_ms)
end
if retry_of ~= '' then
  redis.call('HSET', question.record, 'of', retry_of)
end
redis.call('XADD', question.journal, '*', 'k', 'accepted', 'j', accepted)
redis.call('ZADD', messages, at, name)
-- Trimmed by age, not by number: messages missing here could not be erased any more. The time to live
-- of a journal starts at its end, at the deadline or, if no process runs the timers, somewhat later.
redis.call('ZREMRANGEBYSCORE', messages, '-inf',
  whole(tonumber(at) - 2000 * (tonumber(seconds_ms) + kept_ms)))
redis.call('ZADD', named, whole(now), name)
-- Clients that number the messages of each conversation reuse the same few ids.
redis.call('ZREMRANGEBYRANK', named, 0, -1 - MOST_NAMED)
redis.call('PEXPIREAT', question.record, keep_text)
redis.call('PEXPIREAT', question.journal, keep_text)
keep(messages)
keep(named)

-- Add `merged_into` to the reply. Names are percent-encoded, ids in replies are not.
local function joining(target)
  local id = string.gsub(string.match(target, '[^/]*$'), '%%(%x%x)', function(hex)
    return string.char(tonumber(hex, 16))
  end)
  return string.sub(merged_reply, 1, -2) .. ',"merged_into":' .. cjson.encode(id) .. '}'
end

local function merge()
  merged_reply = joining(target)
  local merged = redis.call('HINCRBY', question.conversation, target .. ':merged', 1)
  redis.call('HSET', question.conversation, target .. ':m' .. merged, frame)
  local latest = math.min(start_at, tonumber(redis.call('HGET', question.conversation,
    target .. ':deadline')))
  redis.call('HSET', question.conversation, target .. ':at', whole(latest))
  redis.call('ZADD', shard.delayed, 'XX', whole(latest), 's ' .. target)
  alarm(shard, shard.delayed, 's ' .. target, whole(latest))
  redis.call('HSET', question.record, 'o', 'superseded')
  if result_list ~= '' then
    redis.call('HSET', question.record, 'ri',
      redis.call('XADD', results, '*', 'q', name, 'o', 'superseded', 'j', merged_reply))
    redis.call('PEXPIRE', results, shard.ttl) -- rule: result-list-expires
  end
  redis.call('XADD', question.journal, '*', 'k', 'finished', 'j', merged_reply)
  notice(shard, name)
  return { 'merged', target }
end

if target then
  return merge()
end

-- Prefetch the memory that the consumer needs. Returns false for a key of another type: the reader of
-- the memory then reports the error.
local function read_along()
  local hashes, first, last = arg(), arg(), arg()
  if hashes == '' then
    return false
  end
  local list = key()
  local found = { redis.pcall('LRANGE', list, first, last), redis.pcall('LLEN', list) }
  for _ = 1, tonumber(hashes) do
    found[#found + 1] = redis.pcall('HGETALL', key())
  end
  for _, part in ipairs(found) do
    if type(part) == 'table' and part.err then
      return false
    end
  end
  return found
end

-- Send the message, and take the next entry of the role; without its fields if it is this message.
local function send_and_take(stream)
  local fields = { 'q', name, 'f', frame, 'd', deadline_text, 'l', result_list, 'n', '0' }
  if consumer == '' then
    put(stream, fields)
    return false
  end
  local waited = take(stream, consumer, 1)[1]
  if waited then -- rule: taken-entry-is-named-truly
    put(stream, fields)
    return { waited[1], waited[2], whole(now), false }
  end
  if base ~= '' then
    redis.call('HSET', question.frames, base, frame) -- rule: frame-taken-at-submission-is-kept
    redis.call('PEXPIREAT', question.frames, keep_text)
    fields = { 'q', name, 'p', '{}', 'b', base, 'd', deadline_text, 'l', result_list, 'n', '0' }
  end
  put(stream, fields)
  local mine = take(stream, consumer, 1)[1]
  return mine and { mine[1], false, whole(now), read_along() } or false
end

redis.call('HINCRBY', pace_name, 'in', '1')
redis.call('ZADD', shard.deadlines, deadline_text, name)
alarm(shard, shard.deadlines, name, deadline_text)
redis.call('HINCRBY', shard.open, tenant, '1')
redis.call('RPUSH', question.order, name)
keep(question.order)
if before == 0 and start_at == 0 then
  return { 'accepted', 0, send_and_take(shard.streams[role]) }
end
redis.call('HSET', question.conversation, name .. ':stream', shard.streams[role], name .. ':frame', frame,
  name .. ':deadline', deadline_text, name .. ':at', whole(start_at), name .. ':merged', '0',
  name .. ':list', result_list)
keep(question.conversation)
if before == 0 then
  put_off(shard, 's ' .. name, whole(start_at))
else
  show(shard, question, redis.call('LINDEX', question.order, '0'), role, frame)
end
return { 'accepted', before }
