-- Moves a waiting job to another due time; its expiry moves along.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 id   3 d|a   4 delay or instant in ms   5 1 = only if that is sooner (run now)
-- Reply text `outcome state due` (s rescheduled, r running, x dead, n notFound; states as in enqueue)
-- Cost  O(log n)
--#include keys
--#include clock
--#include layout
--#include envelope
--#if limits
--#include groups
--#end
--#include record
--#include session
--#include begin
--#include place
--#include rescheduling
--#include changed
--#include wake

local seq, id, onlySooner = sequence(ARGV[1]), ARGV[2], ARGV[5] == '1'
local target = tonumber(ARGV[4])
if ARGV[3] == 'd' then target = now + target end
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end

local head = head_of_due()
--#limits check_groups()
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('ZCARD', IDLE)
local answer = reschedule_one(id, function() return target end, onlySooner, nil)
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer
