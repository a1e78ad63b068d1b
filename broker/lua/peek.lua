-- Tell what is due. KEYS: deadlines, delayed. ARGV: at most so many of each.
-- Returns {now (ms), delayed that are due, questions over their deadline, ms of the next one}.

local now = now_ms()
local function due(zset)
  return redis.call('ZRANGEBYSCORE', zset, '-inf', whole(now), 'LIMIT', 0, ARGV[1])
end
local nearest = now + 1000
for _, zset in ipairs(KEYS) do
  local first = redis.call('ZRANGE', zset, 0, 0, 'WITHSCORES')
  if first[2] then
    nearest = math.min(nearest, tonumber(first[2]))
  end
end
return { whole(now), due(KEYS[2]), due(KEYS[1]), whole(nearest) }
