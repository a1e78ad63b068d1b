-- Let a message in, once, in order, within the quota.
-- KEYS: shard, stream; record, journal, order, conversation, tombstone; messages, named, results.
-- Returns {'accepted', waiting} | {'merged', name} | {'duplicate', reply or ''} | {'busy', reason}.

local shard = read_shard()
local name, tenant, role, frame = arg(), arg(), arg(), arg()
local seconds_ms, resort, resort_outcome = arg(), arg(), arg()
local result_list, delay_ms, accepted = arg(), tonumber(arg()), arg()
local quota, longest, merged_reply = tonumber(arg()), tonumber(arg()), arg()
local question = read_question(name)
local messages, named, results = key(), key(), key()

if redis.call('EXISTS', question.record) == 1 then
  local last = redis.call('XREVRANGE', question.journal, '+', '-', 'COUNT', 1)[1]
  if last and last[2][2] == 'finished' then
    return { 'duplicate', last[2][4] }
  end
  return { 'duplicate', '' }
end

local open = redis.call('ZCARD', shard.deadlines)
if open >= quota then
  return { 'busy', 'shard_full' }
end
if open * 2 >= quota then
  local mine = tonumber(redis.call('HGET', shard.open, tenant) or 0)
  local tenants = redis.call('HLEN', shard.open)
  if mine == 0 then
    tenants = tenants + 1
  end
  if mine >= math.max(1, math.floor(quota / tenants)) then
    return { 'busy', 'tenant_share' }
  end
end
local before = redis.call('LLEN', question.order)
if before > longest then
  return { 'busy', 'conversation_full' }
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local at = time[1] .. string.format('%06d', tonumber(time[2]))
local deadline = now + tonumber(seconds_ms)
local keep_until = deadline + tonumber(shard.ttl)
local start_at = delay_ms > 0 and now + delay_ms or 0

-- Keep what a conversation shares until its last message is past, never shorter than before.
local function keep(name)
  if redis.call('PTTL', name) < keep_until - now then
    redis.call('PEXPIREAT', name, whole(keep_until))
  end
end

redis.call('HSET', question.record, 'at', at, 'd', whole(deadline), 't', tenant, 'l', result_list,
  'lr', resort, 'lo', resort_outcome)
redis.call('XADD', question.journal, '*', 'k', 'accepted', 'j', accepted)
redis.call('RPUSH', messages, name)
redis.call('LTRIM', messages, -1000, -1)
redis.call('ZADD', named, now, name)
for _, kept in ipairs({ question.record, question.journal, messages, named }) do
  keep(kept)
end

local function merge_into(target)
  local merged = redis.call('HINCRBY', question.conversation, target .. ':merged', 1)
  redis.call('HSET', question.conversation, target .. ':m' .. merged, frame)
  local latest = math.min(start_at, tonumber(redis.call('HGET', question.conversation,
    target .. ':deadline')))
  redis.call('HSET', question.conversation, target .. ':at', whole(latest))
  redis.call('ZADD', shard.delayed, 'XX', whole(latest), 's ' .. target)
  redis.call('HSET', question.record, 'o', 'superseded')
  if result_list ~= '' then
    redis.call('XADD', results, '*', 'q', name, 'o', 'superseded', 'j', merged_reply)
    redis.call('PEXPIRE', results, shard.ttl)
  end
  redis.call('XADD', question.journal, '*', 'k', 'finished', 'j', merged_reply)
  notice(shard, name)
  return { 'merged', target }
end

if start_at > 0 and before > 0 then
  local last = redis.call('LINDEX', question.order, -1)
  local waits_until = redis.call('HGET', question.conversation, last .. ':at')
  if waits_until and waits_until ~= '0' then
    return merge_into(last)
  end
end

redis.call('ZADD', shard.deadlines, whole(deadline), name)
redis.call('HINCRBY', shard.open, tenant, 1)
redis.call('RPUSH', question.order, name)
keep(question.order)
if before == 0 and start_at == 0 then
  redis.call('XADD', shard.streams[role], '*', 'q', name, 'f', frame, 'd', whole(deadline),
    'l', result_list, 'n', '0')
  return { 'accepted', 0 }
end
redis.call('HSET', question.conversation, name .. ':stream', shard.streams[role], name .. ':frame', frame,
  name .. ':deadline', whole(deadline), name .. ':at', whole(start_at), name .. ':merged', '0',
  name .. ':list', result_list)
keep(question.conversation)
if before == 0 then
  redis.call('ZADD', shard.delayed, whole(start_at), 's ' .. name)
end
return { 'accepted', before }
