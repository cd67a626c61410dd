-- Forgets jobs that another shard holds by now.
-- KEYS  the shard's fixed list
-- ARGV  1 the state these keys must be in   then ids (1..200)
-- Reply OK
-- Cost  O(ids x log n)
--#include keys
--#include clock
--#include layout

local meta = call('HMGET', META, 'layout', 'needs')
local refused = moved_on(meta[1], meta[2], ARGV[1])
if refused then return refused end
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
call('ZCARD', DUE); call('ZCARD', QUARANTINE); call('ZCARD', DEAD); call('ZCARD', COMPLETED); call('HLEN', HISTORY)
local ids = { unpack(ARGV, 2) }
call('ZREM', DUE, unpack(ids))
call('ZREM', QUARANTINE, unpack(ids))
call('ZREM', DEAD, unpack(ids))
call('HDEL', ATTEMPTS, unpack(ids))
call('HDEL', ERRORS, unpack(ids))
call('HDEL', DEBOUNCE, unpack(ids))
call('ZREM', UNIQUE, unpack(ids))
call('ZREM', COMPLETED, unpack(ids))
call('HDEL', HISTORY, unpack(ids))
call('HDEL', JOBS, unpack(ids))
return 'OK'
