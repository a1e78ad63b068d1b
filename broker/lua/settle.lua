-- Settle entries of one shard, each atomically; then take entries for consumers with free slots.
-- Returns 1 or 0 for each settlement, the time (ms), and the entries that each consumer took. An entry
-- that a settlement of this call sent alone is returned as the index of the settlement and its deadline.
-- ARGV after the shard: the number of demands, and each demand. Then, for each settlement: header, fields
-- of its journal entry, arguments of its kind. The order of all keys and arguments is defined in
-- broker/settle_script.py, which generates the readers used here.

-- The most fields of one journal entry, because Lua limits the number of arguments of a call.
local MOST_FIELDS = 1000

-- Apply the settlement of a held entry: write its journal entry, then run the function of its kind.
local function settle_one(one)
  next_key, next_arg = one.first_key, one.first_arg
  local kind = one.kind
  local question = read_keys[kind](one.question)
  local record = redis.call('HMGET', question.record, unpack(RECORD_FIELDS[kind]))
  if record[RECORD.outcome] or not record[RECORD.deadline] then -- rule: closed-question-stays-closed
    return 0
  end
  if one.branch ~= '' then
    question.branch, question.frames = one.branch, question.frames or key()
    local join, due = find_branch(question.frames, question.branch)
    if not join then
      return 0 -- rule: ended-branch-settles-nothing
    end
    record.question_deadline, record[RECORD.deadline] = record[RECORD.deadline], due
  end
  question.keep = record[RECORD.keep_ms]
  local journal_end = next_arg + one.journal_fields
  for first = next_arg + 1, journal_end, MOST_FIELDS do
    redis.call('XADD', question.journal, '*',
      unpack(ARGV, first, math.min(first + MOST_FIELDS - 1, journal_end)))
  end
  next_arg = journal_end
  settle[kind](question, record, read_arguments[kind]())
  return 1
end

-- Remove held entries from their streams, all entries of a stream at once; return which were held.
local function take_off(settlements)
  local held, by_stream = {}, {}
  for place, one in ipairs(settlements) do
    local stream, id = shard.streams[one.role], one.entry_id
    local ids = by_stream[stream] or {}
    by_stream[stream] = ids
    if not ids[id] and holds(stream, id, one.consumer, one.delivery_count) then
      held[place] = true
      ids[id] = true
      ids[#ids + 1] = id
    end
  end
  for stream, ids in pairs(by_stream) do
    if #ids > 0 then
      redis.call('XACK', stream, GROUP, unpack(ids)) -- rule: settled-entry-is-acknowledged
      redis.call('XDEL', stream, unpack(ids)) -- rule: settled-entry-leaves-stream
    end
  end
  return held
end

local demands, settlements = {}, {}
for place = 1, tonumber(arg()) do
  demands[place] = read_demand()
end
while next_arg < #ARGV do
  local one = read_header()
  one.first_key, one.first_arg = next_key, next_arg
  next_key, next_arg = next_key + one.key_count, next_arg + one.argument_count
  settlements[#settlements + 1] = one
end
local held, problem = take_off(settlements), nil
for place, one in ipairs(settlements) do
  local succeeded, result = true, 0
  if held[place] then
    -- An error in one settlement, such as a key of another type, does not stop the others.
    succeeded, result = pcall(settle_one, one)
  end
  done[place] = succeeded and result or 0
  problem = problem or not succeeded and result
end
if problem then
  error(problem)
end
local taken = {}
for place, demand in ipairs(demands) do
  taken[place] = take(shard.streams[demand.role], demand.consumer, demand.slots)
end
return { done, whole(now_ms()), taken }
