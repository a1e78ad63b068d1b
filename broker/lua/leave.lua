-- Remove a consumer; what it still owns is handed back first. KEYS: stream. ARGV: consumer.

local stream, consumer = KEYS[1], ARGV[1]
local rows = redis.pcall('XPENDING', stream, GROUP, '-', '+', 1000, consumer)
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
if #rows < 1000 then
  redis.call('XGROUP', 'DELCONSUMER', stream, GROUP, consumer)
end
return #rows
