-- Record that a rewrite of the append-only file has started. KEYS: files.
-- ARGV: run id of the server, the marks that the rewrite covers or ''. Returns the start time (ms).

local began = whole(now_ms())
redis.call('HSET', KEYS[1], 'began', began, 'run', ARGV[1], 'covers', ARGV[2])
return began
