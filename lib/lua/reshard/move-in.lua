-- Takes in jobs from another shard. A job that is here already stays as it is: a run that was killed has copied it. A
-- full Redis refuses it: moving first needs room.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 the state these keys must be in   then per job the eleven values that move-out replied
-- Reply how many were not here before
-- Cost  O(ids x log n)
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#if limits
--#include envelope
--#include groups
--#end

local refused = begin_moving(ARGV[1])
if refused then return refused end
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
call('ZCARD', DUE); call('ZCARD', QUARANTINE); call('ZCARD', DEAD); call('ZCARD', RUNNING)
call('ZCARD', COMPLETED); call('HLEN', HISTORY); call('ZCARD', ZONED)
local indexes, fresh = { d = DUE, s = QUARANTINE, x = DEAD }, 0
--#if limits
check_groups()
indexes.b = DUE
--#end
for i = 2, #ARGV, 11 do
  local id, index = ARGV[i], indexes[ARGV[i + 1]]
  if index and not (call('ZSCORE', DUE, id) or call('ZSCORE', QUARANTINE, id) or call('ZSCORE', DEAD, id) or
    call('ZSCORE', RUNNING, id)) then
--#if limits
    local place = place_in(ARGV[i + 3])
    if index == DUE then enter({ ARGV[i + 2], id }, { exact(place) }) end
    if place >= 16 and (index == QUARANTINE or ARGV[i + 1] == 'b') then call('ZADD', HELD, exact(place), id) end
--#end
    call('ZADD', index, ARGV[i + 2], id)
    if ARGV[i + 3] ~= '' then call('HSET', JOBS, id, ARGV[i + 3]) end
    if ARGV[i + 4] ~= '' then call('HSET', ATTEMPTS, id, ARGV[i + 4]) end
    if ARGV[i + 5] ~= '' then call('HSET', ERRORS, id, ARGV[i + 5]) end
    if ARGV[i + 7] ~= '' then call('HSET', DEBOUNCE, id, ARGV[i + 7]) end
    fresh = fresh + 1
  end
  if ARGV[i + 6] ~= '' then call('ZADD', UNIQUE, 'NX', ARGV[i + 6], id) end
  if ARGV[i + 8] ~= '' and ARGV[i + 9] ~= '' then
    call('HSET', HISTORY, id, ARGV[i + 9])
    call('ZADD', COMPLETED, 'NX', ARGV[i + 8], id)
  end
  if ARGV[i + 10] ~= '' then
    call('ZADD', ZONED, ARGV[i + 10], id)
    -- It was noted by the zone data of a process of the other shard, so the next process with newer ones looks at all.
    call('HDEL', META, 'zoneData', 'zoneWalk')
  end
end
return fresh
