-- Takes a waiting job away. A running one is only marked, with a tombstone in `followups`, and only when asked to; what was to
-- follow its run goes with it.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 id   3 1 = also when running: abort at the next heartbeat, never retry
-- Reply text `outcome state` (c cancelled, r running, x dead, n notFound; l delayed, d due, r running, x dead, - none)
-- Cost  O(log n)
--#include keys
--#include clock
--#include layout
--#include session

local seq, id, evenRunning = sequence(ARGV[1]), ARGV[2], ARGV[3] == '1'
local meta = call('HMGET', META, 'layout', 'needs')
local refused = refusal(meta[1], meta[2])
if refused then return refused end
local answer, stale = remembered(seq)
if answer then return answer end
if answer == false then return stale end

call('HLEN', JOBS); call('HLEN', FOLLOWUPS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
local due, suspect = tonumber(call('ZSCORE', DUE, id)), call('ZSCORE', QUARANTINE, id)
if call('ZSCORE', RUNNING, id) then
  answer = 'r r'
  if evenRunning then
    call('HSET', FOLLOWUPS, id, '!')
    -- Its window and burst are over as when it had not run yet; those of a job that is enqueued from now on are its own.
    call('HDEL', DEBOUNCE, id)
    call('ZREM', UNIQUE, id)
  end
elseif due or suspect then
  answer = (due and due > now) and 'c l' or 'c d'
  call('ZREM', DUE, id)
  call('ZREM', QUARANTINE, id)
  call('HDEL', ATTEMPTS, id)
  call('HDEL', ERRORS, id)
  call('HDEL', DEBOUNCE, id)
  call('ZREM', UNIQUE, id)
  -- Last: a record without an index is indexed again by the next enqueue, an index without a record would be a ghost.
  call('HDEL', JOBS, id)
elseif call('ZSCORE', DEAD, id) then
  answer = 'x x'
else
  answer = 'n -'
end
remember(seq, answer)
return answer
