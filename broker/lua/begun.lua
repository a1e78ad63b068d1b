-- Note that the file is being written anew, by this run of the server. KEYS: files.
-- ARGV: run, the marks that it covers or ''. Returns when that was (ms).

local began = whole(now_ms())
redis.call('HSET', KEYS[1], 'began', began, 'run', ARGV[1], 'covers', ARGV[2])
return began
