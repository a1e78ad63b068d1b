-- Tell what is due. KEYS: deadlines, delayed, duty. ARGV: at most so many of each.
-- Returns {now (ms), delayed that are due, questions over their deadline, ms of the next one or '',
-- who sent last what was due or ''}.

local now = now_ms()
local function due(zset)
  return redis.call('ZRANGEBYSCORE', zset, '-inf', whole(now), 'LIMIT', 0, ARGV[1])
end
local nearest
for place = 1, 2 do
  local first = redis.call('ZRANGE', KEYS[place], 0, 0, 'WITHSCORES')
  if first[2] then
    nearest = math.min(nearest or math.huge, tonumber(first[2]))
  end
end
return {
  whole(now), due(KEYS[2]), due(KEYS[1]), nearest and whole(nearest) or '',
  redis.call('HGET', KEYS[3], 'timer') or '',
}
