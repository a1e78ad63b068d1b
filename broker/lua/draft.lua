-- Add a draft of the answer to the journal, replacing the previous draft.
-- KEYS: the stream of the entry's role, the question's record and journal.
-- ARGV: id, consumer and count of the entry, the draft as JSON, the draft that it replaces or ''.
-- Returns the draft's journal id, or '' if the entry is no longer held or the question has ended.

local stream, record, journal = key(), key(), key()
local id, consumer, count, draft, replaced = arg(), arg(), arg(), arg(), arg()
local known = redis.call('HMGET', record, 'd', 'o')
if not known[1] or known[2] or not holds(stream, id, consumer, count) then
  return ''
end
if replaced ~= '' then
  redis.call('XDEL', journal, replaced)
end
return redis.call('XADD', journal, '*', 'k', 'draft', 'j', draft)
