-- Gives one running job a lease of its own: a long lease for the whole batch would hold its neighbours if the process died.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 claim   3 id   4 lease ms; the lease never ends sooner than it did before
-- Reply text: new claim number, or 0 when the job is no longer held by that claim
-- Cost  O(log n)
--#include keys
--#include clock
--#include layout
--#include session
--#include begin
--#include claim-number
--#include lease

local seq, old, id, lease = sequence(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local replied, lastClaim, longestLease = begin(seq, true, 'claim', 'longestLease')
if replied then return replied end

local answer = '0'
call('ZCARD', LEASES)
if tonumber(call('ZSCORE', RUNNING, id)) == old then
  answer = claim_name(next_claim(whole(lastClaim)))
  local was = claim_name(old)
  local longest = math.max(whole(longestLease) or 0, lease)
  local deadline = tonumber(call('ZSCORE', LEASES, was)) or 0
  local fresh = math.min(math.max(math.floor(deadline), now + lease), now + longest)
  -- The only job of its process stays that, or a job that extends its lease could kill processes uncharged.
  local sole = is_sole(deadline) and call('ZCOUNT', RUNNING, was, was) <= 1
  call('ZADD', LEASES, sole and sole_deadline(fresh) or fresh, answer)
  call('ZADD', RUNNING, answer, id)
  end_lease_if_empty(was)
  call('HSET', META, 'claim', answer, 'longestLease', longest)
end
remember(seq, answer)
return answer
