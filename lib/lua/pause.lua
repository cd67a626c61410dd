-- Stops (1) or resumes (0) the claiming of this shard by every process. Running handlers are not touched.
-- KEYS  the shard's fixed list
-- ARGV  1 0|1, or ? to ask for a place in the order of calls   2 the place that ? was answered
--       A call with a place before that of another one that took effect, and which arrives after it, changes nothing
-- Reply text: 1 when that changed something, else 0; or the place
-- Cost  O(log n)
--#include keys
--#include clock
--#include layout
--#if limits
--#include envelope
--#include groups
--#end
--#include changed
--#include wake
--#include asked

local refused, leader, paused, pauseAsked, lastPlace = read_meta(false, 'leader', 'paused', 'pauseAsked', 'lastPlace')
if refused then return refused end
if ARGV[1] == '?' then return next_place(lastPlace, pauseAsked) end
if is_overtaken(ARGV[2], pauseAsked) then return '0' end
local head = head_of_due()
call('ZCARD', IDLE)
call('HSET', META, 'paused', ARGV[1], 'pauseAsked', ARGV[2] or micros())
if (paused or '0') ~= ARGV[1] then mark_changed() end
if ARGV[1] == '0' and paused == '1' and head then wake(holder(leader)) end
return (paused or '0') == ARGV[1] and '0' or '1'
