-- Hand entries back without spending an attempt. KEYS: streams.
-- ARGV: lease (ms); then for each: number of its stream, id, consumer, count.
-- A first delivery becomes a new entry at once; a suspect keeps its count and is reclaimed instead.

local lease = arg()

local function hand_back(stream, id, consumer, count)
  if not holds(stream, id, consumer, count) then
    return 0
  end
  if tonumber(count) > 1 then
    redis.call('XCLAIM', stream, GROUP, consumer, 0, id, 'IDLE', lease, 'RETRYCOUNT', count - 1,
      'JUSTID')
    return 1
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
