-- Reads the jobs that have these ids, and the type of every key that may be written.
-- Needs the arguments. Gives the head of `due`, `size`, and of each job by its number what every index says.

local head = head_of_due() --#limits local head = not begun and moment() or nil
-- Jobs that wait or run, but not what schedules have stored ahead (ahead.lua); this call adds those that it makes.
local size = 0
if limited then
  local ahead = whole(call('HGET', META, 'ahead')) or 0
  size = call('ZCARD', DUE) + call('ZCARD', RUNNING) + call('ZCARD', QUARANTINE) - ahead
end
local due, running, dead, quarantined, windowEnds, burstStarts, known, history
local ids = {}
for r, start in ipairs(starts) do
  for k = 1, counts[r] do ids[#ids + 1] = ARGV[start + 2 * k - 1] end --#limits for k = 0, counts[r] - 1 do ids[#ids + 1] = ARGV[start + widths[r] * k + 1] end
end
if not checked and #ids > 0 then
  -- The library has just made these ids. But a copy of the call may come late: its caller has given up by then, and may have enqueued the
  -- job once more under the id that the error named.
  for _, envelope in ipairs(call('HMGET', JOBS, unpack(ids))) do
    if envelope then checked = true end
  end
end
if checked then
  call('HLEN', JOBS); call('HLEN', FOLLOWUPS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
  due, running = call('ZMSCORE', DUE, unpack(ids)), call('ZMSCORE', RUNNING, unpack(ids))
  dead, quarantined = call('ZMSCORE', DEAD, unpack(ids)), call('ZMSCORE', QUARANTINE, unpack(ids))
  windowEnds, burstStarts = call('ZMSCORE', UNIQUE, unpack(ids)), call('HMGET', DEBOUNCE, unpack(ids))
  known, history = {}, call('ZCARD', COMPLETED)
  if history > 0 then call('HLEN', HISTORY) end
end
