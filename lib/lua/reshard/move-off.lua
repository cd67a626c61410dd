-- Forgets jobs that another shard holds by now.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 the state these keys must be in   then ids (1..200)
-- Reply OK
-- Cost  O(ids x log n)
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#if limits
--#include envelope
--#include groups
--#end
--#include erase

local refused = begin_moving(ARGV[1])
if refused then return refused end
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
call('ZCARD', DUE); call('ZCARD', QUARANTINE); call('ZCARD', DEAD); call('ZCARD', COMPLETED); call('HLEN', HISTORY)
call('ZCARD', ZONED)
local ids = { unpack(ARGV, 2) }
--#if limits
check_groups()
depart(unpack(ids))
call('ZREM', HELD, unpack(ids))
--#end
call('ZREM', DUE, unpack(ids))
call('ZREM', QUARANTINE, unpack(ids))
call('ZREM', DEAD, unpack(ids))
call('ZREM', COMPLETED, unpack(ids))
call('HDEL', HISTORY, unpack(ids))
call('ZREM', ZONED, unpack(ids))
erase_unfinished(unpack(ids))
return 'OK'
