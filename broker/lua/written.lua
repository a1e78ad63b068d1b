-- Record that the file was rewritten; erasures since the start of the rewrite keep their mark.
-- KEYS: files. ARGV: start of the rewrite (ms), time to live of this record (ms).

local known = redis.call('HMGET', KEYS[1], 'began', 'covers', 'marks')
if known[1] ~= ARGV[1] then
  return 0
end
if (known[3] or '') == known[2] then
  redis.call('HDEL', KEYS[1], 'first')
elseif known[3] then
  redis.call('HSET', KEYS[1], 'first', known[1])
end
redis.call('HDEL', KEYS[1], 'began', 'run', 'covers')
redis.call('HSET', KEYS[1], 'written', known[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
