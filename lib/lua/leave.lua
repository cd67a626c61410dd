-- A worker process leaves one shard, so that no job waits for it: takes it out of `idle` and hands its roles on.
-- KEYS  the shard's fixed list
-- ARGV  1 name of this worker: channel of its process, `#`, a number
--       2 `d` when a call of this session got no answer: a copy of it may still come, and must find that it is over
-- Reply text OK
-- Cost  O(log n)
--#include keys
--#include clock
--#include layout
--#if limits
--#include envelope
--#include groups
--#end
--#include session
--#include changed
--#include wake

local me = ARGV[1]
local refused, leader, isolator, paused = read_meta(true, 'leader', 'isolator', 'paused')
if refused then return refused end
local head = head_of_due()
call('ZREM', IDLE, me)
if ARGV[2] == 'd' then call('SET', SESSION, SESSION_OVER, 'PX', SESSION_PX) else call('UNLINK', SESSION) end
if holder(isolator) == me then call('HSET', META, 'isolator', '') end
if holder(leader) == me then
  local successor, entered = unpack(sleepers(1))
  local till = successor and leads_until(entered)
  call('HSET', META, 'leader', till and successor .. ' ' .. string.format('%.0f', till) or '')
  -- Who may be dead does not get the role: whoever looks first has it.
  if till then tell(successor) elseif successor then wake(nil, me) end
elseif head and paused ~= '1' then
  wake(holder(leader), me)
end
return 'OK'
