-- Cancels one job, for the calls that do that. They read the types of the keys before.
-- @param evenRunning also when it runs: it aborts at the next heartbeat and is never retried
-- @param expected when it must be due if it waits, or it is left alone; nil for any time
-- @returns `outcome state`: c cancelled, m due at another time, r running, x dead, n notFound; l delayed, d due, r, x, - none
local function cancel_one(id, evenRunning, expected)
  local place, due = place_of(id)
  if place == 'r' and evenRunning then
    call('HSET', FOLLOWUPS, id, '!')
    -- Its window and burst are over as when it had not run yet; those of a job that is enqueued from now on are its own.
    call('HDEL', DEBOUNCE, id)
    call('ZREM', UNIQUE, id)
  end
  if place ~= 'w' then return NOT_WAITING[place] end
  local state = (due and due > now) and 'l' or 'd'
  if expected and due ~= expected then return 'm ' .. state end
  call('ZREM', DUE, id) --#limits depart(id); free(id); call('ZREM', DUE, id)
  call('ZREM', QUARANTINE, id)
  erase_unfinished(id)
  return 'c ' .. state
end
