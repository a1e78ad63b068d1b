-- Return how a question ended. KEYS: its journal, its record.
-- Returns the last journal entry, and from the record the time of acceptance and the outcome.

return {
  redis.call('XREVRANGE', key(), '+', '-', 'COUNT', 1),
  redis.call('HMGET', key(), 'at', 'o'),
}
