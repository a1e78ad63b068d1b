-- Move an entry that cannot be decoded to the dead letters, at its first delivery. KEYS: shard, stream;
-- if the question is known, also its closing keys and its result list.
-- ARGV: role, id, consumer, count, name or '', frame, error, '1' to delete the entry silently if its
-- question has ended. Returns 1 if the entry was still held.

local shard = read_shard()
local role, id, consumer, count, name, frame, problem = arg(), arg(), arg(), arg(), arg(), arg(), arg()
local unless_ended = arg() == '1'
local stream = shard.streams[role]
if not holds(stream, id, consumer, count) then
  return 0
end
redis.call('XACK', stream, GROUP, id)
redis.call('XDEL', stream, id)
local question = { name = '' }
if name ~= '' then
  question = read_question(name)
  local ended = redis.call('HEXISTS', question.record, 'o') == 1
  -- The text of an erased question must not reappear in a dead letter.
  if ended and (unless_ended or redis.call('EXISTS', question.journal) == 0) then
    return 1
  end
end
bury(shard, question, frame, role, 'malformed', problem,
  { count, consumer, string.match(id, '%d+'), '' })
if name ~= '' then
  local results = key()
  local record = redis.call('HMGET', question.record, 'o', 't', 'lr', 'lo', 'l', 'k')
  question.keep = record[6]
  if not record[1] and record[2] then
    close(shard, question, record[2], record[5] ~= '' and results or nil, record[4],
      last_resort(record[3], OF_DEAD_LETTER), now_ms())
  end
end
return 1
