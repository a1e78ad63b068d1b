-- Keep leases: an entry that is still held is claimed anew without a further delivery.
-- KEYS: streams; ARGV, for each entry: number of its stream, id, consumer, count.
-- Returns the places (from 0) of the entries that are held no longer.

local lost = {}
while next_arg < #ARGV do
  local place = next_arg / 4
  local stream, id, consumer, count = KEYS[tonumber(arg())], arg(), arg(), arg()
  if holds(stream, id, consumer, count) then
    redis.call('XCLAIM', stream, GROUP, consumer, 0, id, 'JUSTID') -- rule: renewal-extends-lease
  else
    lost[#lost + 1] = place
  end
end
return lost
