-- Gives one waiting job another due time, for the calls that do that. They read the types of the keys before and wake after.
-- @param target_of(due) the new time; `due` is the old one, nil in quarantine
-- @param onlySooner leaves a job that is due by then already, and tells its own time
-- @param expected when it must be due, or it is left alone; nil for any time
-- @returns `outcome state due`: s rescheduled, m due at another time, r running, x dead, n notFound; states as of cancelling.lua
local function reschedule_one(id, target_of, onlySooner, expected)
  local place, due = place_of(id)
  if place ~= 'w' then return NOT_WAITING[place] .. ' 0' end
  local state = (due and due > now) and 'l' or 'd'
  if expected and due ~= expected then return 'm ' .. state .. ' 0' end
  local target = target_of(due)
  if onlySooner and (not due or due <= target) then target = due or now
  else
    local envelope = call('HGET', JOBS, id)
    call('ZADD', DUE, target, id) --#limits set_due(target, id, envelope); free(id)
    if envelope then call('HSET', JOBS, id, moved(envelope, target)) end
    disown(id)
    call('ZREM', QUARANTINE, id)
  end
  return 's ' .. state .. string.format(' %.0f', target)
end
