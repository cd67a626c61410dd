-- Moves a waiting job to another due time; its expiry moves along.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 id   3 d|a   4 delay or instant in ms   5 1 = only if that is sooner (run now)
-- Reply text `outcome state due` (s rescheduled, r running, x dead, n notFound; states as in enqueue)
-- Cost  O(log n)
--#include keys
--#include clock
--#include layout
--#include envelope
--#include record
--#include session
--#include wake

local seq, id, onlySooner = sequence(ARGV[1]), ARGV[2], ARGV[5] == '1'
local target = tonumber(ARGV[4])
if ARGV[3] == 'd' then target = now + target end
local meta = call('HMGET', META, 'layout', 'needs', 'leader', 'paused', 'wokenAt')
local refused = refusal(meta[1], meta[2])
if refused then return refused end
local answer, stale = remembered(seq)
if answer then return answer end
if answer == false then return stale end

local head = head_of_due()
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('ZCARD', IDLE)
local due, suspect = tonumber(call('ZSCORE', DUE, id)), call('ZSCORE', QUARANTINE, id)
if call('ZSCORE', RUNNING, id) then
  answer = 'r r 0'
elseif due or suspect then
  local state = (due and due > now) and 'l' or 'd'
  if onlySooner and (not due or due <= target) then target = due or now
  else
    local envelope = call('HGET', JOBS, id)
    call('ZADD', DUE, target, id)
    if envelope then call('HSET', JOBS, id, moved(envelope, target)) end
    disown(id)
    call('ZREM', QUARANTINE, id)
  end
  answer = 's ' .. state .. string.format(' %.0f', target)
elseif call('ZSCORE', DEAD, id) then
  answer = 'x x 0'
else
  answer = 'n - 0'
end
remember(seq, answer)
if meta[4] ~= '1' and must_wake(head, head_of_due(), tonumber(meta[5])) then
  call('HSET', META, 'wokenAt', now)
  wake(holder(meta[3]))
end
return answer
