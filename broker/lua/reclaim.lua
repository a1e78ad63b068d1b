-- Take over results that another consumer has held for longer than a lease. KEYS: stream. ARGV:
-- consumer, lease (ms), cursor, count, idle time (ms) after which a consumer without entries is removed.
-- Returns {next cursor, entries, counts, now (ms)}.

local stream = KEYS[1]
local found = redis.pcall('XAUTOCLAIM', stream, GROUP, ARGV[1], ARGV[2], ARGV[3], 'COUNT', ARGV[4])
if found.err then
  return { '0-0', {}, {}, '0' }
end
local entries, counts = {}, {}
for _, entry in ipairs(found[2]) do
  if entry and entry[2] then
    local row = redis.call('XPENDING', stream, GROUP, entry[1], entry[1], 1, ARGV[1])[1]
    entries[#entries + 1] = entry
    counts[#counts + 1] = row[4]
  end
end

-- Consumers that have been idle for long and own nothing belong to dead processes.
for _, row in ipairs(redis.call('XINFO', 'CONSUMERS', stream, GROUP)) do
  local consumer = {}
  for i = 1, #row, 2 do
    consumer[row[i]] = row[i + 1]
  end
  if consumer.pending == 0 and consumer.idle > tonumber(ARGV[5]) then
    redis.call('XGROUP', 'DELCONSUMER', stream, GROUP, consumer.name)
  end
end
return { found[1], entries, counts, whole(now_ms()) }
