-- Forget messages of one conversation: delete every word of theirs, and end those that are open,
-- the newest first, so that none of them lets another start.
-- KEYS: shard; order, conversation, tombstone, messages; for each message record, journal, frames,
-- result list (or the record again); the conversation's memory.
-- ARGV after the shard: the conversation's name; '1' to end what is open, '' to leave it; number of
-- messages, and for each its name and its reply as superseded.
-- Returns {messages that had words, ended now, dead letters, memory keys that there were, messages
-- that are not among these, the names of those of which an entry may travel still, and since when
-- (ms)}.

local shard = read_shard()
local order, conversation, tombstone, messages = key(), key(), key(), key()
local stem, ends = arg(), arg() ~= ''
local worded, ended, letters, remembered = 0, 0, 0, 0
local travelling, since = {}, nil

local function end_question(name, record, journal, frames, known, reply)
  local question = {
    name = name, record = record, journal = journal, order = order, conversation = conversation,
    tombstone = tombstone, frames = frames, keep = known[4],
  }
  close(shard, question, known[3], nil, 'superseded', reply, now_ms())
  ended = ended + 1
end

local function forget(name, reply, record, journal, frames, results)
  local known = redis.call('HMGET', record, 'o', 'd', 't', 'k', 'l', 'at')
  local open = known[2] and not known[1]
  if open and (not ends or known[5] ~= '' and results == record) then
    -- The second came in after the caller had looked for its result list: it is asked again.
    return
  end
  if open then
    end_question(name, record, journal, frames, known, reply)
  end
  if open or known[1] == 'superseded' or known[1] == 'failed' then
    travelling[#travelling + 1] = name
    since = math.min(since or math.huge, tonumber(known[6]) / 1000)
  end
  worded = worded + redis.call('EXISTS', journal)
  forget_words(record, journal, results)
  if ends then
    redis.call('ZREM', messages, name)
  end
end

for _ = 1, tonumber(arg()) do
  forget(arg(), arg(), key(), key(), key(), key())
end
if ends then
  letters = forget_letters(shard, stem)
  while next_key < #KEYS do
    remembered = remembered + redis.call('DEL', key())
  end
  leave_tombstone(shard, tombstone)
end
return {
  worded, ended, letters, remembered, redis.call('ZCARD', messages), travelling,
  since and whole(since) or '',
}
