-- Return entries to their streams without counting a start. KEYS: streams.
-- ARGV for each: index of its stream, id, consumer, count.
-- Each becomes a new entry with the same fields.

local function hand_back(stream, id, consumer, count)
  if not holds(stream, id, consumer, count) then
    return 0
  end
  local entry = redis.call('XRANGE', stream, id, id)[1]
  redis.call('XACK', stream, GROUP, id)
  redis.call('XDEL', stream, id)
  if entry then
    redis.call('XADD', stream, '*', unpack(entry[2]))
  end
  return 1
end

local returned = 0
while next_arg < #ARGV do
  returned = returned + hand_back(KEYS[tonumber(arg())], arg(), arg(), arg())
end
return returned
