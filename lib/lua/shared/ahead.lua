-- What schedules have stored ahead does not count for `maxSize` (enqueue/state.lua). `ahead{id}` of SCHEDULES says how many that are, as the
-- record of the schedule has it, and `ahead` of META how many those of all schedules are: written together, so that an enqueue asks for one
-- number. A claim, a cancellation and a reschedule leave both alone, or each job would pay for it: so until the next write of the schedule
-- what has begun since, or is gone, counts as stored ahead. That lets in a few jobs more, and refuses none.
local function count_ahead(field, n)
  local was = whole(call('HGET', SCHEDULES, 'ahead' .. field)) or 0
  if n == was then return end
  if n > 0 then call('HSET', SCHEDULES, 'ahead' .. field, n) else call('HDEL', SCHEDULES, 'ahead' .. field) end
  call('HSET', META, 'ahead', math.max(0, (whole(call('HGET', META, 'ahead')) or 0) + n - was))
end
