-- Branches of a question, stored in the hash that keeps its frames until it ends. A branch has a path
-- such as w2/t1: branch t1 of branch w2. A join collects the results of one scatter. Fields:
--   b:<path> an open branch: its join, and its deadline (ms)
--   n:<join> the counters of the join: see JOIN; p:<join> the paths of its branches, as JSON
--   f:<join> the frame that is sent with the results
--   w:<join>:<place> a queued branch: path, role and frame, each on a line
--   r:<path> a result, as JSON
-- The end of the question deletes the hash, and with it every branch and every join.
-- The join does not wait for a branch whose path ends with `watch`. That branch runs once for each
-- message that arrives meanwhile (see `show` in closing.lua): a success ends the join immediately, any
-- other result changes nothing.

-- role: receives the results; need: successes that end the join; left: branches without a result;
-- good: successes; due: deadline (ms); following: the place of the first queued branch.
local JOIN = '^(%S+) (%d+) (%d+) (%d+) (%d+) (%d+)$'

local function read_join(text)
  local role, need, left, good, due, following = string.match(text, JOIN)
  return { role = role, need = tonumber(need), left = tonumber(left), good = tonumber(good),
    due = due, following = tonumber(following) }
end

local function write_join(frames, name, join)
  redis.call('HSET', frames, 'n:' .. name, table.concat({ join.role, join.need, join.left,
    join.good, join.due, join.following }, ' '))
end

local function is_watch(path)
  return string.match(path, '[^/]*$') == 'watch'
end

-- Return the member of the delayed set that stands for the deadline of a join.
local function name_deadline(question, name, role)
  return 'j ' .. name .. ' ' .. role .. ' ' .. question.name
end

local function send_branch(shard, question, role, frame, due, result_list)
  put(shard.streams[role], { 'q', question.name, 'f', frame, 'd', due, 'l', result_list, 'n', '0' })
end

-- Delete a join and its branches; return the frame to send, and the results as one JSON object.
local function take_join(question, name)
  local frame, listed = unpack(redis.call('HMGET', question.frames, 'f:' .. name, 'p:' .. name))
  local paths, results, gone = cjson.decode(listed), {}, { 'n:' .. name, 'f:' .. name, 'p:' .. name }
  for place, path in ipairs(paths) do
    results[place] = 'r:' .. path
    gone[#gone + 1] = 'r:' .. path
    gone[#gone + 1] = 'b:' .. path
    gone[#gone + 1] = 'w:' .. name .. ':' .. place
  end
  local found, members = redis.call('HMGET', question.frames, unpack(results)), {}
  for place, path in ipairs(paths) do
    if found[place] then
      members[#members + 1] = '"' .. path .. '":' .. found[place]
    end
  end
  redis.call('HDEL', question.frames, unpack(gone)) -- rule: join-goes-on-once
  return frame, '{' .. table.concat(members, ',') .. '}'
end

-- End a join: send its frame with the results so far to its role. `due` is the deadline of the branch
-- or question that started the join.
local function go_on(shard, question, name, join, due, result_list)
  redis.call('ZREM', shard.delayed, name_deadline(question, name, join.role))
  local frame, results = take_join(question, name)
  put(shard.streams[join.role], { 'q', question.name, 'f', frame, 'g', results, 'd', due,
    'l', result_list, 'n', '0' })
end

-- Return the deadline of the branch that started this join (ms), or nil if that branch has ended.
local function find_due(question, name, deadline)
  local above = string.match(name, '^(.*)#')
  if above == '' then
    return deadline
  end
  local _, due = find_branch(question.frames, above)
  return due
end

-- Store the result of an open branch; end the join if it is complete, else start the next branch.
local function give_result(shard, question, path, result, is_good, record)
  local name, ends = find_branch(question.frames, path), is_watch(path)
  if ends and is_good == 0 then -- rule: watch-is-not-waited-for
    return
  end
  redis.call('HDEL', question.frames, 'b:' .. path) -- rule: branch-returns-once
  redis.call('HSET', question.frames, 'r:' .. path, result) -- rule: result-is-kept
  local join = read_join(redis.call('HGET', question.frames, 'n:' .. name))
  join.left, join.good = join.left - 1, join.good + is_good
  if ends or join.left == 0 or join.good >= join.need then -- rule: join-goes-on-when-met
    go_on(shard, question, name, join, find_due(question, name, record.deadline), record.result_list)
    return
  end
  local waiting = 'w:' .. name .. ':' .. join.following
  local following = redis.call('HGET', question.frames, waiting)
  if following then
    redis.call('HDEL', question.frames, waiting)
    join.following = join.following + 1
    local _, role, frame = string.match(following, '^([^\n]*)\n([^\n]*)\n(.*)$')
    send_branch(shard, question, role, frame, join.due, record.result_list) -- rule: next-branch-begins
  end
  write_join(question.frames, name, join)
end
