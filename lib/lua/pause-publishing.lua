-- Refuses every enqueue to this shard (1), or accepts them again (0). What is stored already is not touched.
-- KEYS  the shard's fixed list
-- ARGV  1 0|1
-- Reply text: 1 when that changed something, else 0
-- Cost  O(1)
--#include keys
--#include layout

local meta = call('HMGET', META, 'layout', 'needs', 'publishingPaused')
local refused = refusal(meta[1], meta[2])
if refused then return refused end
call('HSET', META, 'publishingPaused', ARGV[1])
return (meta[3] or '0') == ARGV[1] and '0' or '1'
