-- Removes all keys of a shard whose jobs have moved, and leaves a mark for those who still think that it is one.
-- KEYS  the shard's fixed list
-- ARGV  1 the state these keys must be in   2 the state to leave
-- Reply OK, or the number of jobs that are still here
-- Cost  O(1): large keys are freed in the background
--#include keys
--#include clock
--#include layout

local meta = call('HMGET', META, 'layout', 'needs')
local refused = moved_on(meta[1], meta[2], ARGV[1])
if refused then return refused end
call('HLEN', JOBS); call('HLEN', NEXT); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', FIRST)
call('ZCARD', LEASES); call('ZCARD', IDLE); call('HLEN', HISTORY)
local left = call('ZCARD', DUE) + call('ZCARD', RUNNING) + call('ZCARD', SUSPECTS) + call('ZCARD', DEAD)
left = left + call('ZCOUNT', DONE, '(' .. now, '+inf') + call('ZCARD', COMPLETED)
if left > 0 then return string.format('%d', left) end
call('UNLINK', DUE, RUNNING, LEASES, JOBS, NEXT, ATTEMPTS, SUSPECTS, DEAD, ERRORS, DONE, FIRST, IDLE, COMPLETED, HISTORY,
  META)
call('HSET', META, 'layout', LAYOUT, 'needs', 'shards:' .. ARGV[2])
return 'OK'
