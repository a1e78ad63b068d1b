-- How many questions a shard lets in: as many as keep its workers busy, and a few that wait.
--
-- What travels either waits on a stream (W) or is worked on (B); by Little's law W/B is the time
-- spent waiting over the time spent working. So no speed and no number of workers has to be configured:
-- a bound of B + share * B + sqrt(B) keeps the wait at about that share of a question's own time,
-- and the root leaves room for chance. B is the mean of a measurement over one turnover: as many
-- questions ended as travelled at its beginning. A changed bound gets a turnover to take effect
-- before the next measurement, or the bound would swing (what was let in arrives at the bottleneck
-- only later).
--
-- The pace of a shard is a hash: in, accepted so far; ended, at the beginning of the phase; at, the
-- last look; apart, open questions that do not travel; limit; measuring (0: the bound takes effect);
-- since, the phase began (ms); turn, questions to end in it; waited and worked (question-ms); rate
-- (questions ended per ms); refused in the phase, and before it.

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

-- What waits on the shard's streams, and what workers hold; `lanes` are streams of their own.
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
    -- Only a bound that held all the time says anything: how long a short queue may become.
    local calm = waited < (goal - worked) * CALM
    pace.limit = math.max(before, calm and before * GROWTH or goal)
  end
  pace.limit = math.max(at_least, pace.limit)
  local same = math.abs(pace.limit - before) <= before * SAME
  begin_phase(pace, now, ended, travelling, same and 1 or 0)
end

-- Look how the shard does: `open` counts its open questions.
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
    -- Nobody looked for long: what happened meanwhile is not known.
    begin_phase(pace, now, ended, travelling, 0)
  else
    pace.waited = pace.waited + waiting * elapsed
    pace.worked = pace.worked + working * elapsed
    local over = pace.measuring == 0 and travelling > pace.limit * (1 + SAME / 2)
    if gone >= pace.turn then
      -- A pause makes no shard slow: the rate falls only where something waited.
      local rate = gone / math.max(1, now - pace.since)
      if pace.waited > 0 or pace.refused > 0 or rate > pace.rate then
        pace.rate = rate
      end
    end
    if over then
      -- What was let in before the bound changed has yet to leave; those who were refused still count.
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

-- Return the pace of a shard as of now; it is looked at no more often than every LOOK_MS.
local function keep_pace(name, shard, now, open, share, at_least, lanes)
  local pace = read_pace(name)
  if pace.at == 0 or now - pace.at >= LOOK_MS then
    look(shard, pace, now, open, share, at_least, lanes)
    write_pace(name, pace, shard.ttl)
  end
  return pace
end

-- How long until `ahead` questions have ended, in ms; `unknown` when none was seen to end.
local function wait_for(pace, now, ended, ahead, unknown)
  if pace.rate <= 0 then
    return unknown
  end
  -- Where less ends than it did, this phase counts together with one turnover of before.
  local since = (ended - pace.ended + pace.turn) / (now - pace.since + pace.turn / pace.rate)
  local rate = math.min(pace.rate, since)
  return math.min(LONGEST_WAIT_MS, math.max(SHORTEST_WAIT_MS, ahead / rate))
end
