-- Takes in schedules from another shard. One that is here already stays as it is: a run that was killed has copied it. But where it is what
-- is left here of one on its way to that shard, the one that comes lives, and takes its place. A full Redis refuses it: moving first needs
-- room.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 the state these keys must be in   then per schedule the nine values that schedules-out replied
-- Reply how many were not here before, or took the place of what was left here
-- Cost  O(ids x log n), plus the length of their payloads
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include ahead

local refused = begin_moving(ARGV[1])
if refused then return refused end
call('ZCARD', TICKS); call('ZCARD', PENDING)
-- The second line of a record, up to what a schedule that leaves had counted here when it was handed over (schedule-record.ts).
local LEAVES = '^[^\n]*\n[^\n]*"leaving":{'
local COUNTED = LEAVES .. '[^\n]*"counted":{"missed":(%d+),"overlapped":(%d+)}'
local fresh, names = 0, { '', 'floor', 'missed', 'overlapped', 'paused', 'since' }
for i = 2, #ARGV, 9 do
  local id, field, text = ARGV[i], '{' .. ARGV[i] .. '}', ARGV[i + 2]
  local here = call('HGET', SCHEDULES, field)
  local is_left = here and string.find(here, LEAVES) and not string.find(text, LEAVES)
  -- An index without a record is no schedule.
  if ARGV[i + 1] ~= '' and text ~= '' and (not here or is_left) then
    -- What was counted here since then, the one that lives does not know.
    local counted = { string.match(here or '', COUNTED) }
    for n = 1, 6 do
      local value = ARGV[i + 1 + n]
      local was = whole(counted[n - 2])
      if was then value = (whole(value) or 0) + math.max(0, (whole(call('HGET', SCHEDULES, names[n] .. field)) or 0) - was) end
      if value ~= '' then call('HSET', SCHEDULES, names[n] .. field, value) end
    end
    count_ahead(field, whole(ARGV[i + 8]) or 0)
    if is_left then
      call('ZREM', TICKS, id)
      call('ZREM', PENDING, id)
    end
    fresh = fresh + 1
  end
  if ARGV[i + 1] ~= '' and call('HEXISTS', SCHEDULES, field) == 1 then call('ZADD', TICKS, 'NX', ARGV[i + 1], id) end
end
return fresh
