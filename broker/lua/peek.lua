-- Return the due items. KEYS: deadlines, delayed, duty. ARGV: the most items of each kind.
-- Returns {now (ms), due delayed items, questions past their deadline, time of the next item (ms) or
-- '', the process that last sent due items or ''}.

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
