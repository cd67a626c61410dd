-- Removes all keys of a shard. Where its jobs have moved it leaves a mark, for callers that still take it for a shard. Where its queue
-- is removed it wakes the workers that sleep, so that they register anew.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 the state these keys must be in   2 the state to leave, or '' for nothing   3 what keeps it from that: nothing here for all
--       that is stored, j for jobs that wait, run or are dead and for schedules, f for nothing   4 of a removal: `since` of `meta`, or ''.
--       A copy of the call that arrives late finds another one where the queue was made anew, and changes nothing
-- Reply OK, the number of jobs that are still here, or anew
-- Cost  O(1): large keys are freed in the background
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#if limits
--#include envelope
--#include groups
--#end
--#include changed
--#include wake

local refused, leader, since = begin_moving(ARGV[1], 'leader', 'since')
if refused then return refused end
if ARGV[4] and ARGV[4] ~= (since or '') then return 'anew' end
call('HLEN', JOBS); call('HLEN', FOLLOWUPS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE)
call('ZCARD', LEASES); call('ZCARD', IDLE); call('HLEN', HISTORY)
call('HLEN', SCHEDULES); call('ZCARD', PENDING)
local left = call('ZCARD', DUE) + call('ZCARD', RUNNING) + call('ZCARD', QUARANTINE) + call('ZCARD', DEAD) + call('ZCARD', TICKS)
local kept = call('ZCOUNT', UNIQUE, '(' .. now, '+inf') + call('ZCARD', COMPLETED) + call('ZCARD', ZONED)
if ARGV[3] == 'f' then left = 0 elseif ARGV[3] ~= 'j' then left = left + kept end
if left > 0 then return string.format('%d', left) end
if ARGV[2] == '' then wake(holder(leader)) end
call('UNLINK', DUE, RUNNING, LEASES, JOBS, FOLLOWUPS, ATTEMPTS, QUARANTINE, DEAD, ERRORS, UNIQUE, DEBOUNCE, IDLE, COMPLETED, HISTORY,
  SCHEDULES, TICKS, ZONED, PENDING, META, CHANGED) --#limits SCHEDULES, TICKS, ZONED, PENDING, META, CHANGED, GROUPED, RING, HELD, RATES)
if ARGV[2] ~= '' then call('HSET', META, 'layout', LAYOUT, 'needs', 'shards:' .. ARGV[2]) end
return 'OK'
