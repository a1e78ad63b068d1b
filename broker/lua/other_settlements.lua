-- Settlements that start or end branches, retry, or may end the question.

read_whole(shard)

-- Show each message that waits behind this question to its watch branch: now, and as they arrive.
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

-- Branches beyond `at_once` are queued; each starts when another one returns.
function settle.scatter(question, record, scatter)
  local name, deadline = scatter.join, record[RECORD.deadline]
  local due = whole(math.min(now_ms() + scatter.duration_ms, tonumber(deadline))) -- rule: join-ends-by-the-deadline
  local paths, at_once = {}, tonumber(scatter.at_once)
  for place = 1, tonumber(scatter.branches) do
    local branch = read_branch()
    paths[place] = branch.path
    redis.call('HSET', question.frames, 'b:' .. branch.path, name .. ' ' .. due)
    if place <= at_once then -- rule: branches-at-once-are-bounded
      send_branch(shard, question, branch.role, branch.frame, due, record[RECORD.result_list])
    else
      redis.call('HSET', question.frames, 'w:' .. name .. ':' .. place,
        branch.path .. '\n' .. branch.role .. '\n' .. branch.frame)
    end
  end
  write_join(question.frames, name, { role = scatter.role, need = scatter.need, left = #paths,
    good = 0, due = due, following = at_once + 1 })
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

-- Memory writes of one question. They are read but skipped if the conversation was erased meanwhile.
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
  for _ = 1, tonumber(memory_writes) do
    local write, values = read_memory_write(), {}
    for i = 1, tonumber(write.values) do
      values[i] = arg()
    end
    if allowed and (#values > 0 or write.kind == 'delete') then
      -- A key of another type must not abort a settlement halfway: journal the error and continue.
      local fine, problem = pcall(memory[write.kind], write.key, write.ttl_seconds, values, write.keep)
      if not fine then
        local message = type(problem) == 'table' and problem.err or tostring(problem)
        redis.call('XADD', question.journal, '*', 'k', 'memory_failed', 'j',
          cjson.encode({ key = write.key, error = message }))
      end
    end
  end
end

-- Erase the ended messages of the conversation; open ones stay.
local function forget(own)
  for _ = 1, tonumber(arg()) do
    local message = read_forgotten()
    if redis.call('HEXISTS', message.record, 'o') == 1 and message.record ~= own then
      forget_words(message.record, message.journal, message.results)
    end
  end
end

-- Return the key of the question's result list, or nil if it has none.
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
  local sends = tonumber(buried.sends)
  if sends > 0 then
    send_frames(question.name, record, sends)
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
