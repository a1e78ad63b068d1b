-- Count dead letters by role, without sending their frames. KEYS: dead. Returns role, count, ...

local counts = {}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'role' then
      local role = entry[2][i + 1]
      counts[role] = (counts[role] or 0) + 1
    end
  end
end
local flat = {}
for role, count in pairs(counts) do
  flat[#flat + 1] = role
  flat[#flat + 1] = count
end
return flat
