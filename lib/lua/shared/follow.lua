-- Ends the run of `id` by what `next` holds: a tombstone ends the job, an envelope becomes the job with no attempts, and a hold
-- (`=` and a due time, by hold.lua) gives the job back as it was.
local function follow(id, after)
  if string.sub(after, 1, 1) == '=' then
    call('ZADD', DUE, string.sub(after, 2), id)
  elseif string.len(after) > 1 then
    call('ZADD', DUE, due_of(after) or now, id)
    call('HSET', JOBS, id, after)
    call('HDEL', ATTEMPTS, id)
    call('HDEL', ERRORS, id)
  else
    call('HDEL', ATTEMPTS, id)
    call('HDEL', ERRORS, id)
    call('HDEL', FIRST, id)
    call('ZREM', DONE, id) -- Cancelled, so its window is over, as when it had not run yet.
    call('HDEL', JOBS, id)
  end
  call('ZREM', RUNNING, id)
  call('ZREM', SUSPECTS, id)
  call('HDEL', NEXT, id)
end
