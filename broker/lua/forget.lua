-- Erase messages of one conversation: delete their text, and end the open ones, newest first, so that
-- ending one does not start another.
-- KEYS: shard; order, conversation, tombstone, messages; for each message record, journal, frames,
-- result list (or the record again); the conversation's memory.
-- ARGV after the shard: the conversation's name; '1' to end open messages, '' to skip them; the number
-- of messages, and for each its name and its reply as superseded.
-- Returns {messages that had text, messages ended now, dead letters deleted, memory keys deleted,
-- messages that remain, names of messages that may still have an entry in a stream, the time since
-- which such entries exist (ms) or ''}.

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
    -- A message that arrived after the caller read its result list: the caller tries it again.
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
