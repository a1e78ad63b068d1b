-- Bury an entry that is no frame of ours, on first sight. KEYS: shard, stream; when the question
-- is known also its own as for closing, and its result list.
-- ARGV: role, id, consumer, count, name or '', frame, error, '1' when nothing is wrong with it once
-- its question has ended. Returns 1 when it was still held.

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
  -- Of one that was forgotten no word may come back.
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
