-- Return entries to the stream whose delivery a live consumer never received, because the response was
-- lost. This does not count as a start. KEYS: stream.
-- ARGV: consumer, the age (ms) from which a delivery counts as lost, then the ids that it received.
-- Returns 1 if the caller must call again: some entries are too new, or there were too many.

local AT_ONCE = 1000
local stream, consumer, age = KEYS[1], ARGV[1], tonumber(ARGV[2])
local known = {}
for i = 3, #ARGV do
  known[ARGV[i]] = true
end
local rows = redis.pcall('XPENDING', stream, GROUP, '-', '+', AT_ONCE, consumer)
if rows.err then
  return 0
end
local again = #rows == AT_ONCE and 1 or 0
for _, row in ipairs(rows) do
  local id = row[1]
  if known[id] then -- rule: known-entries-stay-with-consumer
    -- Received: nothing to do.
  elseif row[3] < age then
    again = 1
  else
    local entry = redis.call('XRANGE', stream, id, id)[1] -- rule: unknown-entries-return-to-stream
    redis.call('XACK', stream, GROUP, id)
    redis.call('XDEL', stream, id)
    if entry then
      redis.call('XADD', stream, '*', unpack(entry[2]))
    end
  end
end
return again
