-- Refuses every enqueue to this shard (1), or accepts them again (0). Stored jobs are not touched.
-- KEYS  the shard's fixed list
-- ARGV  1 0|1, or ? to ask for a place in the order of calls   2 the place that ? was answered, as in pause.lua
-- Reply text: 1 when that changed something, else 0; or the place
-- Cost  O(1)
--#include keys
--#include clock
--#include layout
--#include asked
--#include changed

local refused, paused, pauseAsked, lastPlace = read_meta(false, 'publishingPaused', 'publishingPauseAsked', 'lastPlace')
if refused then return refused end
if ARGV[1] == '?' then return next_place(lastPlace, pauseAsked) end
if is_overtaken(ARGV[2], pauseAsked) then return '0' end
call('HSET', META, 'publishingPaused', ARGV[1], 'publishingPauseAsked', ARGV[2] or micros())
if (paused or '0') ~= ARGV[1] then mark_changed() end
return (paused or '0') == ARGV[1] and '0' or '1'
