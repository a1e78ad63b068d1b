-- Tell how a question ended. KEYS: its journal, its record.
-- Returns the journal's last entry, and from the record when it was accepted and the outcome.

return {
  redis.call('XREVRANGE', key(), '+', '-', 'COUNT', 1),
  redis.call('HMGET', key(), 'at', 'o'),
}
