-- Forgets schedules that another shard holds by now.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 the state these keys must be in   then ids (1..200)
-- Reply OK
-- Cost  O(ids x log n)
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include ahead

local refused = begin_moving(ARGV[1])
if refused then return refused end
call('ZCARD', TICKS); call('ZCARD', PENDING)
for i = 2, #ARGV do
  local id, field = ARGV[i], '{' .. ARGV[i] .. '}'
  count_ahead(field, 0)
  call('HDEL', SCHEDULES, field, 'floor' .. field, 'missed' .. field, 'overlapped' .. field, 'paused' .. field, 'since' .. field)
  call('ZREM', TICKS, id)
  call('ZREM', PENDING, id)
end
return 'OK'
