-- End an open question as superseded, and optionally erase its text. KEYS: shard, question, results.
-- ARGV after the shard: name, reply, forget ('1' or ''). Returns 1 if the question was open.

local shard = read_shard()
local name, reply, forgets = arg(), arg(), arg()
local question, results = read_question(name), key()
local record = redis.call('HMGET', question.record, 'o', 'd', 't', 'l', 'k')
question.keep = record[5]
if record[4] and record[4] ~= '' and results == question.record then
  -- The question arrived after the caller read its result list, so the cancellation came first.
  return 0
end
local open = record[2] and not record[1]
if open then
  close(shard, question, record[3], record[4] ~= '' and results or nil, 'superseded', reply, now_ms())
end
if forgets ~= '' and record[2] then
  forget_words(question.record, question.journal, results)
  forget_letters(shard, name)
end
return open and 1 or 0
