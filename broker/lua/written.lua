-- Note that the file was written anew; what was erased since that began keeps its mark.
-- KEYS: files. ARGV: when it began (ms), how long this is known (ms).

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
