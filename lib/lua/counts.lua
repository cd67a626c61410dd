-- What one shard holds. Reads only.
-- KEYS  the shard's fixed list
-- ARGV  none
-- Reply now, delayed, due, running, dead, suspects, paused 0|1, oldest due or -1, next due or -1, live waiters,
--       enqueued, completed, failed, retried, buried, expired, since or 0, when a worker last looked or 0,
--       publishing paused 0|1, completed and kept, ms since the first lease is over that nobody has taken back, or 0
-- Cost  O(log n)
--#include keys
--#include clock
--#include layout

local meta = call('HMGET', META, 'paused', 'enqueued', 'completed', 'failed', 'retried', 'dead', 'expired', 'since', 'seenAt',
  'layout', 'needs', 'publishingPaused', 'graceUntil', 'longestLease')
local refused = refusal(meta[10], meta[11])
if refused then return refused end
local suspects = call('ZRANGE', QUARANTINE, 0, 0, 'WITHSCORES')
local due = call('ZRANGE', DUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
local later = call('ZRANGE', DUE, '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
local nQuarantined = call('ZCARD', QUARANTINE)
local oldest = due[1] and tonumber(due[2])
if suspects[1] then oldest = math.min(oldest or math.huge, tonumber(suspects[2])) end
-- As lib/lua/step.lua sees it: after a jump of the clock, or when nobody looked for long, deadlines prove nothing for a while.
local first = call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')
local grace = whole(meta[13]) or 0
if grace > now + math.max(whole(meta[14]) or 0, 30000) then grace = 0 end
local running = call('ZCARD', RUNNING)
local over = running > 0 and first[1] and now - math.max(tonumber(first[2]), grace) or 0
local function total(n) return whole(meta[n]) or 0 end
return {
  now, call('ZCOUNT', DUE, '(' .. now, '+inf'), call('ZCOUNT', DUE, '-inf', now) + nQuarantined, running,
  call('ZCARD', DEAD), nQuarantined, meta[1] == '1' and 1 or 0, oldest and math.max(0, oldest) or -1,
  later[1] and math.min(tonumber(later[2]), 9e15) or -1, call('ZCOUNT', IDLE, now, '+inf'),
  total(2), total(3), total(4), total(5), total(6), total(7), total(8), total(9),
  meta[12] == '1' and 1 or 0, call('ZCARD', COMPLETED), math.max(0, math.min(over, 9e15)),
}
