-- Admission control: how many questions a shard accepts, so that its workers stay busy and few wait.
--
-- A question in flight either waits on a stream (W) or is being processed (B). By Little's law, W/B is
-- the waiting time divided by the processing time, so no speed and no number of workers is configured:
-- a limit of B + share * B + sqrt(B) keeps the wait at about that share of the processing time, and the
-- square root absorbs random variation. B is averaged over one turnover: the time in which as many
-- questions end as were in flight at its start. A changed limit gets one turnover to take effect before
-- the next measurement; otherwise the limit would oscillate, because admitted questions reach the
-- bottleneck later.
--
-- The state of a shard is a hash. in: questions accepted so far; ended: questions ended at the start of
-- the phase; at: the last measurement (ms); apart: open questions that are not in flight; limit;
-- measuring: 0 while a changed limit takes effect; since: the start of the phase (ms); turn: questions
-- to end in the phase; waited, worked: question-ms; rate: questions ended per ms; refused: rejections
-- in this phase; before: rejections in the previous phase.
local LOOK_MS, LONGEST_GAP_MS = 10, 1000
local COLD, GROWTH, SAME, CALM = 4, 1.5, 0.1, 0.25
local SHORTEST_TURN = 4
local SHORTEST_WAIT_MS, LONGEST_WAIT_MS = 50, 60000
local PACE = { 'in', 'ended', 'at', 'apart', 'limit', 'measuring', 'since', 'turn', 'waited',
  'worked', 'rate', 'refused', 'before' }

local function read_pace(name)
  local pace, values = {}, redis.call('HMGET', name, unpack(PACE))
  for place, field in ipairs(PACE) do
    pace[field] = tonumber(values[place] or 0)
  end
  return pace
end

local function write_pace(name, pace, ttl)
  local values = {}
  for _, field in ipairs(PACE) do
    values[#values + 1] = field
    values[#values + 1] = string.format('%.15g', pace[field])
  end
  redis.call('HSET', name, unpack(values))
  redis.call('PEXPIRE', name, ttl)
end

local function begin_phase(pace, now, ended, travelling, measuring)
  pace.ended, pace.since, pace.measuring = ended, now, measuring
  pace.turn = math.max(travelling, SHORTEST_TURN)
  pace.waited, pace.worked = 0, 0
  pace.before, pace.refused = pace.refused, 0
end

-- Return how many entries wait and how many are processed, without the separate streams in `lanes`.
local function look_at_streams(streams, lanes)
  local all, held = 0, 0
  for role, stream in pairs(streams) do
    local groups = not lanes[role] and redis.pcall('XINFO', 'GROUPS', stream) or {}
    if groups[1] then
      all = all + redis.call('XLEN', stream)
      for i = 1, #groups[1], 2 do
        if groups[1][i] == 'pending' then
          held = held + groups[1][i + 1]
        end
      end
    end
  end
  return math.max(0, all - held), held
end

local function judge(pace, now, ended, travelling, share, at_least)
  local span = math.max(1, now - pace.since)
  local waited, worked = pace.waited / span, pace.worked / span
  local goal = worked * (1 + share) + math.sqrt(worked)
  local before = pace.limit
  if waited + worked > goal then
    pace.limit = math.min(before, goal)
  elseif pace.refused > 0 and pace.before > 0 then
    -- Raise the limit only if it rejected questions in this phase and in the previous one.
    local calm = waited < (goal - worked) * CALM
    pace.limit = math.max(before, calm and before * GROWTH or goal)
  end
  pace.limit = math.max(at_least, pace.limit)
  local same = math.abs(pace.limit - before) <= before * SAME
  begin_phase(pace, now, ended, travelling, same and 1 or 0)
end

-- Measure the shard and adjust its limit; `open` is the number of its open questions.
local function look(shard, pace, now, open, share, at_least, lanes)
  local elapsed = now - pace.at
  local ended = pace['in'] - open
  local waiting, working = look_at_streams(shard.streams, lanes)
  local travelling = waiting + working
  local gone = ended - pace.ended
  pace.apart = open - travelling
  if pace.at == 0 or gone < 0 then
    pace['in'], pace.limit, pace.refused = open, COLD * at_least, 0
    begin_phase(pace, now, 0, travelling, 0)
  elseif elapsed > LONGEST_GAP_MS and elapsed * pace.rate > pace.turn / 2 then
    -- Too long since the last measurement: start again.
    begin_phase(pace, now, ended, travelling, 0)
  else
    pace.waited = pace.waited + waiting * elapsed
    pace.worked = pace.worked + working * elapsed
    local over = pace.measuring == 0 and travelling > pace.limit * (1 + SAME / 2)
    if gone >= pace.turn then
      -- The rate decreases only if questions waited: a pause between questions does not count.
      local rate = gone / math.max(1, now - pace.since)
      if pace.waited > 0 or pace.refused > 0 or rate > pace.rate then
        pace.rate = rate
      end
    end
    if over then
      -- Questions admitted before the limit changed are still in flight; rejections still count.
      local refused, before = pace.refused, pace.before
      begin_phase(pace, now, ended, travelling, 0)
      pace.refused, pace.before = refused, before
    elseif gone >= pace.turn and pace.measuring == 0 then
      begin_phase(pace, now, ended, travelling, 1)
    elseif gone >= pace.turn then
      judge(pace, now, ended, travelling, share, at_least)
    end
  end
  pace.at = now
end

-- Return the current state of a shard, measured at most once every LOOK_MS.
local function keep_pace(name, shard, now, open, share, at_least, lanes)
  local pace = read_pace(name)
  if pace.at == 0 or now - pace.at >= LOOK_MS then
    look(shard, pace, now, open, share, at_least, lanes)
    write_pace(name, pace, shard.ttl)
  end
  return pace
end

-- Return the time until `ahead` questions have ended (ms), or `unknown` if none has ended yet.
local function wait_for(pace, now, ended, ahead, unknown)
  if pace.rate <= 0 then
    return unknown
  end
  -- If the rate decreases, average this phase with one turnover at the previous rate.
  local since = (ended - pace.ended + pace.turn) / (now - pace.since + pace.turn / pace.rate)
  local rate = math.min(pace.rate, since)
  return math.min(LONGEST_WAIT_MS, math.max(SHORTEST_WAIT_MS, ahead / rate))
end
