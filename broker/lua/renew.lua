-- Keep leases: an entry that is still held is claimed anew without a further delivery.
-- KEYS: streams, and frames of questions; ARGV, for each entry: number of its stream, id, consumer,
-- count, and of a branch the number of its frames and its path, else 0 and ''.
-- Returns the places (from 0) of the entries that are held no longer, or whose branch has ended.

local lost = {}
while next_arg < #ARGV do
  local place = next_arg / 6
  local stream, id, consumer, count = KEYS[tonumber(arg())], arg(), arg(), arg()
  local frames, path = KEYS[tonumber(arg())], arg()
  local ended = path ~= '' and not find_branch(frames, path) -- rule: ended-branch-is-not-renewed
  if not holds(stream, id, consumer, count) then
    lost[#lost + 1] = place
  elseif ended then
    redis.call('XACK', stream, GROUP, id)
    redis.call('XDEL', stream, id)
    lost[#lost + 1] = place
  else
    redis.call('XCLAIM', stream, GROUP, consumer, 0, id, 'JUSTID') -- rule: renewal-extends-lease
  end
end
return lost
