-- Bury an entry that is no frame of ours, on first sight. KEYS: shard, stream.
-- ARGV: role, id, consumer, count, name or '', frame, error. Returns 1 when it was still held.

local shard = read_shard()
local role, id, consumer, count, name, frame, problem = arg(), arg(), arg(), arg(), arg(), arg(), arg()
local stream = shard.streams[role]
if not holds(stream, id, consumer, count) then
  return 0
end
redis.call('XACK', stream, GROUP, id)
redis.call('XDEL', stream, id)
bury(shard, name, frame, role, 'malformed', problem, count, consumer)
if name ~= '' then
  local question, results = read_question(name), key()
  local record = redis.call('HMGET', question.record, 'o', 't', 'lr', 'lo')
  if not record[1] and record[2] then
    close(shard, question, record[2], nil, record[4], record[3], now_ms())
  end
end
return 1
