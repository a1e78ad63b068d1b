-- Hand back what a living consumer owns without knowing: the answer that delivered it was lost.
-- No start is spent, since nobody started it. KEYS: stream.
-- ARGV: consumer, how old (ms) a delivery must be to be taken for lost, then the ids it knows.
-- Returns 1 when something is too new to tell, or too much was there: ask again.

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
    -- It arrived.
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
