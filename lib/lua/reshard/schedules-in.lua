-- Takes in schedules from another shard. One that is here already stays as it is: a run that was killed has copied it. A full Redis
-- refuses it: moving first needs room.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 the state these keys must be in   then per schedule the nine values that schedules-out replied
-- Reply how many were not here before
-- Cost  O(ids x log n), plus the length of their payloads
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include ahead

local refused = begin_moving(ARGV[1])
if refused then return refused end
call('ZCARD', TICKS)
local fresh, names = 0, { '', 'floor', 'missed', 'overlapped', 'paused', 'since' }
for i = 2, #ARGV, 9 do
  local id, field = ARGV[i], '{' .. ARGV[i] .. '}'
  -- An index without a record is no schedule.
  if ARGV[i + 1] ~= '' and ARGV[i + 2] ~= '' and call('HEXISTS', SCHEDULES, field) == 0 then
    for n = 1, 6 do
      if ARGV[i + 1 + n] ~= '' then call('HSET', SCHEDULES, names[n] .. field, ARGV[i + 1 + n]) end
    end
    count_ahead(field, whole(ARGV[i + 8]) or 0)
    fresh = fresh + 1
  end
  if ARGV[i + 1] ~= '' and call('HEXISTS', SCHEDULES, field) == 1 then call('ZADD', TICKS, 'NX', ARGV[i + 1], id) end
end
return fresh
