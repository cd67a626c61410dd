-- Ends the run of `id` by what `followups` holds: a tombstone (`!`) ends the job, an envelope becomes the job with no attempts, and a
-- reservation (`=` and a due time, by reserve.lua) gives the job back as it was. A `!` before an envelope says that the run was cancelled
-- before somebody enqueued its id again: its signal still aborts, and then the envelope follows.
local function is_cancelled(after)
  return after and string.byte(after) == 33
end

-- The version of the job that is to follow; nil when none is.
local function follower(after)
  if is_cancelled(after) then after = string.sub(after, 2) end
  if after and after ~= '' and string.byte(after) ~= 61 then return after end
end

local function follow(id, after)
  local envelope = follower(after)
  if string.byte(after) == 61 then
    call('ZADD', DUE, string.sub(after, 2), id) --#limits set_due(string.sub(after, 2), id, call('HGET', JOBS, id))
  elseif envelope then
    call('ZADD', DUE, due_of(envelope) or now, id) --#limits set_due(due_of(envelope) or now, id, envelope)
    call('HSET', JOBS, id, envelope)
    forget_attempts(id)
  else
    erase(id)
  end
  call('ZREM', RUNNING, id)
  --#limits free(id)
  call('ZREM', QUARANTINE, id)
  call('HDEL', FOLLOWUPS, id)
end
