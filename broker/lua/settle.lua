-- Settle many entries of one shard, each wholly or not at all; then take entries for consumers with room.
-- Returns 1 or 0 for each settlement, the time in milliseconds, and the entries that each consumer took:
-- an entry that this very call sent alone comes back as the place of its settlement and its deadline.
-- ARGV as `unfold` reads them. After the shard: the number of demands, and each demand. Then a list for
-- each settlement: header, fields of its journal entry, arguments of its kind. The order of all keys and
-- arguments is defined in broker/settle_script.py, from which the readers used here are written.

-- Of one journal entry: Lua passes no more than some thousands of values at once.
local MOST_FIELDS = 1000

unfold()
local shard = read_shard()
local settle = {}
local done = {}

-- A frame that is kept is written once; each later frame sends only its changes.
local function keep_frame(frames, base, frame, deadline)
  redis.call('HSET', frames, base, frame) -- rule: base-frame-is-kept
  redis.call('PEXPIREAT', frames, whole(tonumber(deadline) + tonumber(shard.ttl)))
end

local function send_frames(name, record, sends)
  local deadline, result_list = record[RECORD.deadline], record[RECORD.result_list]
  for _ = 1, sends do
    local send = read_send()
    local stream, frame = shard.streams[send.role], send.frame
    local fields
    if send.form == 'whole' then
      fields = { 'q', name, 'f', frame, 'd', deadline, 'l', result_list, 'n', '0' }
    else
      if send.form == 'kept' then
        keep_frame(send.frames, send.base, frame, deadline)
        frame = '{}'
      end
      fields = { 'q', name, 'p', frame, 'b', send.base, 'd', deadline, 'l', result_list, 'n', '0' }
    end
    put(shard, stream, fields, sends == 1 and { #done + 1, deadline }) -- rule: each-send-adds-one-entry
  end
end

function settle.forward(question, record, forward)
  if forward.last_resort ~= '' then
    redis.call('HSET', question.record, 'lr', forward.last_resort, 'lo', forward.last_resort_outcome)
  end
  send_frames(question.name, record, forward.sends)
end

-- From now on, show to this question each message that waits behind it: those that are there, and
-- those that come.
local function watch(shard, question, scatter, due, result_list, keep_until)
  local name, ttl = question.name, redis.call('PTTL', question.conversation)
  redis.call('HSET', question.conversation, name .. ':watch',
    table.concat({ due, result_list, scatter.watch_frame }, '\n'))
  if ttl < tonumber(keep_until) - now_ms() then
    redis.call('PEXPIREAT', question.conversation, keep_until)
  end
  for _, waits in ipairs(redis.call('LRANGE', question.order, '1', '-1')) do
    local frame = redis.call('HGET', question.conversation, waits .. ':frame')
    if frame then
      show(shard, question, name, scatter.role, frame)
    end
  end
end

-- The branches beyond `at_once` wait in the join; each of them begins when another one returns.
function settle.scatter(question, record, scatter)
  local name, deadline = scatter.join, record[RECORD.deadline]
  local due = whole(math.min(now_ms() + scatter.duration_ms, tonumber(deadline))) -- rule: join-ends-by-the-deadline
  local paths = {}
  for place = 1, scatter.branches do
    local branch = read_branch()
    paths[place] = branch.path
    redis.call('HSET', question.frames, 'b:' .. branch.path, name .. ' ' .. due)
    if place <= scatter.at_once then -- rule: branches-at-once-are-bounded
      send_branch(shard, question, branch.role, branch.frame, due, record[RECORD.result_list])
    else
      redis.call('HSET', question.frames, 'w:' .. name .. ':' .. place,
        branch.path .. '\n' .. branch.role .. '\n' .. branch.frame)
    end
  end
  write_join(question.frames, name, { role = scatter.role, need = scatter.need, left = #paths,
    good = 0, due = due, following = scatter.at_once + 1 })
  if scatter.watch ~= '' then
    paths[#paths + 1] = scatter.watch
    redis.call('HSET', question.frames, 'b:' .. scatter.watch, name .. ' ' .. due)
  end
  redis.call('HSET', question.frames, 'f:' .. name, scatter.frame, 'p:' .. name, cjson.encode(paths))
  local keep_until = whole(tonumber(deadline) + tonumber(shard.ttl))
  redis.call('PEXPIREAT', question.frames, keep_until)
  put_off(shard, name_deadline(question, name, scatter.role), due)
  if scatter.watch ~= '' then
    watch(shard, question, scatter, due, record[RECORD.result_list], keep_until)
  end
end

-- Return the fields of the record that a result needs, by name.
local function name_record(record)
  return { deadline = record.question_deadline or record[RECORD.deadline],
    result_list = record[RECORD.result_list] }
end

function settle.return_result(question, record, returned)
  give_result(shard, question, question.branch, returned.result, tonumber(returned.is_good), name_record(record))
end

function settle.retry(question, record, retry)
  local token = 'r ' .. retry.entry_id .. ' ' .. retry.role .. ' ' .. retry.failures .. ' ' .. question.name
  local due = now_ms() + retry.delay_ms
  due = math.min(due, tonumber(record[RECORD.deadline])) -- rule: retry-comes-by-the-deadline
  redis.call('HSET', shard.parked, token, retry.frame)
  put_off(shard, token, whole(due))
end

-- The writes of one question; read, but not carried out, if the conversation was forgotten meanwhile.
local memory = {}

function memory.append(name, ttl, values, keep)
  if redis.call('RPUSH', name, unpack(values)) > tonumber(keep) then
    redis.call('LTRIM', name, -tonumber(keep), -1)
  end
  redis.call('EXPIRE', name, ttl)
end

function memory.set_fields(name, ttl, values)
  redis.call('HSET', name, unpack(values))
  redis.call('EXPIRE', name, ttl)
end

function memory.increment(name, ttl, values)
  for i = 1, #values, 2 do
    redis.call('HINCRBYFLOAT', name, values[i], values[i + 1])
  end
  redis.call('EXPIRE', name, ttl)
end

function memory.delete(name)
  redis.call('DEL', name)
end

local function remember(question, allowed, memory_writes)
  for _ = 1, memory_writes do
    local write, values = read_memory_write(), {}
    for i = 1, write.values do
      values[i] = arg()
    end
    if allowed and (#values > 0 or write.kind == 'delete') then
      -- A key of another type must not stop a settlement half way: it is noted, and left.
      local fine, problem = pcall(memory[write.kind], write.key, write.ttl_seconds, values, write.keep)
      if not fine then
        local message = type(problem) == 'table' and problem.err or tostring(problem)
        redis.call('XADD', question.journal, '*', 'k', 'memory_failed', 'j',
          cjson.encode({ key = write.key, error = message }))
      end
    end
  end
end

-- Messages that are open stay.
local function forget(own)
  for _ = 1, tonumber(arg()) do
    local message = read_forgotten()
    if redis.call('HEXISTS', message.record, 'o') == 1 and message.record ~= own then
      forget_words(message.record, message.journal, message.results)
    end
  end
end

-- Return the key of the question's result list, or nil where it has none.
local function result_key(question, record)
  return record[RECORD.result_list] ~= '' and question.results or nil
end

function settle.finish(question, record, finish)
  local tombstone = redis.call('GET', question.tombstone)
  local allowed = not tombstone or tonumber(record[RECORD.accepted_at]) > tonumber(tombstone)
  remember(question, allowed, finish.memory_writes)
  if finish.forget ~= '' then
    leave_tombstone(shard, question.tombstone)
    forget(question.record)
    forget_letters(shard, string.match(question.name, '^(.*)/'))
  end
  close(shard, question, record[RECORD.tenant], result_key(question, record), finish.outcome,
    finish.reply, now_ms())
end

function settle.bury(question, record, buried)
  local origin = { buried.attempts, buried.worker, buried.queued_ms, buried.deaths }
  bury(shard, question, buried.frame, buried.role, buried.reason, buried.error, origin)
  if buried.sends > 0 then
    send_frames(question.name, record, buried.sends)
    return
  end
  if question.branch then -- rule: branch-ends-no-question
    give_result(shard, question, question.branch, buried.result, 0, name_record(record))
    return
  end
  close(shard, question, record[RECORD.tenant], result_key(question, record),
    record[RECORD.last_resort_outcome], last_resort(record[RECORD.last_resort], OF_DEAD_LETTER),
    now_ms())
end

-- Of an entry that is held: write its journal entry, and do what its kind says.
local function settle_one(one)
  local kind = one[HEADER.kind]
  local question = read_keys[kind](one[HEADER.question])
  local record = redis.call('HMGET', question.record, unpack(RECORD_FIELDS[kind]))
  if record[RECORD.outcome] or not record[RECORD.deadline] then -- rule: closed-question-stays-closed
    return 0
  end
  if one[HEADER.branch] ~= '' then
    question.branch, question.frames = one[HEADER.branch], question.frames or key()
    local join, due = find_branch(question.frames, question.branch)
    if not join then
      return 0 -- rule: ended-branch-settles-nothing
    end
    record.question_deadline, record[RECORD.deadline] = record[RECORD.deadline], due
  end
  question.keep = record[RECORD.keep_ms]
  local journal_end = HEADER_LENGTH + one[HEADER.journal_fields]
  for first = HEADER_LENGTH + 1, journal_end, MOST_FIELDS do
    redis.call('XADD', question.journal, '*',
      unpack(one, first, math.min(first + MOST_FIELDS - 1, journal_end)))
  end
  read(one, journal_end)
  settle[kind](question, record, read_arguments[kind]())
  return 1
end

-- Remove held entries from their streams, all entries of a stream at once; return which were held.
local function take_off(lists)
  local held, by_stream = {}, {}
  for place, one in ipairs(lists) do
    local stream, id = shard.streams[one[HEADER.role]], one[HEADER.entry_id]
    local ids = by_stream[stream] or {}
    by_stream[stream] = ids
    if not ids[id] and holds(stream, id, one[HEADER.consumer], one[HEADER.delivery_count]) then
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

local taken = {}
for place = 1, tonumber(arg()) do
  local demand = read_demand()
  taken[place] = want(shard, shard.streams[demand.role], demand.consumer, demand.slots).entries
end
local lists = {}
for place = next_arg + 1, #args do
  lists[#lists + 1] = args[place]
end
local held, problem = take_off(lists), nil
for place, one in ipairs(lists) do
  local key_end = next_key + one[HEADER.key_count]
  local succeeded, result = true, 0
  if held[place] then
    -- An error of one settlement, such as a key of another type, stops none of the others.
    succeeded, result = pcall(settle_one, one)
  end
  done[place] = succeeded and result or 0
  problem = problem or not succeeded and result
  -- The keys of a refused settlement are not read to their end.
  next_key = key_end
end
if problem then
  error(problem)
end
deliver(shard)
return { done, whole(now_ms()), taken }
