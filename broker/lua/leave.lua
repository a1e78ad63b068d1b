-- Return the entries of a consumer to their stream, then remove it. KEYS: stream. ARGV: consumer, the
-- most entries of one call. Returns 1 if it may own more.

local stream, consumer, most = KEYS[1], ARGV[1], tonumber(ARGV[2])
local rows = redis.pcall('XPENDING', stream, GROUP, '-', '+', most, consumer)
if rows.err then
  return 0
end
for _, row in ipairs(rows) do
  local id = row[1]
  local entry = redis.call('XRANGE', stream, id, id)[1]
  redis.call('XACK', stream, GROUP, id)
  redis.call('XDEL', stream, id)
  if entry then
    redis.call('XADD', stream, '*', unpack(entry[2]))
  end
end
if #rows == most then
  return 1
end
redis.call('XGROUP', 'DELCONSUMER', stream, GROUP, consumer)
return 0
