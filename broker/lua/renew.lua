-- Renew leases: claim each held entry again without counting a delivery.
-- KEYS: streams, and frames of questions; ARGV, for each entry: index of its stream, id, consumer,
-- count, and for a branch the index of its frames and its path, else 0 and ''.
-- Returns the indexes (from 0) of entries that are no longer held, or whose branch has ended.

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
