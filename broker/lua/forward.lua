-- Settlements that forward frames, and what all kinds of settlements share.

local shard = read_streams()
local settle, done = {}, {}

-- Store a base frame once; later entries contain only the changes to it.
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
    put(stream, fields, sends == 1 and { #done + 1, deadline }) -- rule: each-send-adds-one-entry
  end
end

function settle.forward(question, record, forward)
  if forward.last_resort ~= '' then
    redis.call('HSET', question.record, 'lr', forward.last_resort, 'lo', forward.last_resort_outcome)
  end
  send_frames(question.name, record, tonumber(forward.sends))
end
