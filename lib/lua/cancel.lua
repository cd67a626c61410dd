-- Removes a waiting job. A running one is only marked, with a tombstone in `followups`, and only when asked to; what
-- was to follow its run goes with it.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 id   3 1 = also when running: abort at the next heartbeat, never retry
-- Reply text `outcome state` (c cancelled, r running, x dead, n notFound; l delayed, d due, r running, x dead, - none)
-- Cost  O(log n)
--#include keys
--#include clock
--#include layout
--#if limits
--#include envelope
--#include groups
--#include changed
--#include wake
--#end
--#include session
--#include begin
--#include erase
--#include place
--#include cancelling

local seq, id, evenRunning = sequence(ARGV[1]), ARGV[2], ARGV[3] == '1'
local replied = begin(seq, false)
if replied then return replied end

--#if limits
check_groups()
local head = moment()
--#end
call('HLEN', JOBS); call('HLEN', FOLLOWUPS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
local answer = cancel_one(id, evenRunning, nil)
remember(seq, answer)
--#limits wake_for_room(head)
return answer
