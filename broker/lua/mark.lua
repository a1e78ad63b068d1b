-- Mark that text is being erased: the time of the first erasure, and a count. KEYS: files.
-- ARGV: time to live of the mark (ms).

redis.call('HSETNX', KEYS[1], 'first', whole(now_ms()))
redis.call('HINCRBY', KEYS[1], 'marks', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
