-- Remove a consumer; what it still owns is handed back first. KEYS: stream. ARGV: consumer, lease.
-- Entries of a first delivery become new ones; suspects keep their count and are reclaimed.

local stream, consumer, lease = KEYS[1], ARGV[1], ARGV[2]
local rows = redis.pcall('XPENDING', stream, GROUP, '-', '+', 1000, consumer)
if rows.err then
  return 0
end
for _, row in ipairs(rows) do
  local id = row[1]
  if row[4] > 1 then
    redis.call('XCLAIM', stream, GROUP, 'returned', 0, id, 'IDLE', lease, 'RETRYCOUNT', row[4] - 1,
      'JUSTID')
  else
    local entry = redis.call('XRANGE', stream, id, id)[1]
    redis.call('XACK', stream, GROUP, id)
    redis.call('XDEL', stream, id)
    if entry then
      redis.call('XADD', stream, '*', unpack(entry[2]))
    end
  end
end
if #rows < 1000 then
  redis.call('XGROUP', 'DELCONSUMER', stream, GROUP, consumer)
end
return #rows
