-- Gives one running job a lease of its own: a long lease for the whole batch would hold its neighbours if the process died.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 claim   3 id   4 lease ms; the lease never ends sooner than it did before
-- Reply text: new claim number, or 0 when the job is no longer held by that claim
-- Cost  O(log n)
--#include keys
--#include clock
--#include layout
--#include session

local seq, old, id, lease = sequence(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local meta = call('HMGET', META, 'layout', 'needs', 'claim', 'longestLease')
local refused = refusal(meta[1], meta[2], true)
if refused then return refused end
local answer, stale = remembered(seq)
if answer then return answer end
if answer == false then return stale end

answer = '0'
call('ZCARD', LEASES)
if tonumber(call('ZSCORE', RUNNING, id)) == old then
  answer = string.format('%.0f', next_claim(whole(meta[3])))
  local was = string.format('%.0f', old)
  local longest = math.max(whole(meta[4]) or 0, lease)
  local deadline = tonumber(call('ZSCORE', LEASES, was)) or 0
  local fresh = math.min(math.max(math.floor(deadline), now + lease), now + longest)
  -- A job that was alone in its process still is, or whoever extends could kill processes uncharged.
  local mark = deadline % 1
  if call('ZCOUNT', RUNNING, was, was) > 1 then mark = 0 end
  call('ZADD', LEASES, fresh + mark, answer)
  call('ZADD', RUNNING, answer, id)
  if call('ZCOUNT', RUNNING, was, was) == 0 then call('ZREM', LEASES, was) end
  call('HSET', META, 'claim', answer, 'longestLease', longest)
end
remember(seq, answer)
return answer
