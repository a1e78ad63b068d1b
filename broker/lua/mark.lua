-- Keep that something is erased now: since when, and how often since ever. KEYS: files.
-- ARGV: how long the mark stays where nobody looks (ms).

redis.call('HSETNX', KEYS[1], 'first', whole(now_ms()))
redis.call('HINCRBY', KEYS[1], 'marks', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
