-- What one shard holds. Reads only.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  none
-- Reply now, delayed, due, running, dead, quarantined, paused 0|1, oldest due or -1, next due or -1, live sleepers,
--       enqueued, completed, failed, retried, buried, expired, since or 0, when a worker last looked or 0,
--       publishing paused 0|1, completed and kept, ms since the first lease is over that nobody has taken back, or 0,
--       skipped, schedules, for how many ms one of them has needed more occurrences, or 0
-- Cost  O(log n)
--#include keys
--#include schedule-keys
--#include clock
--#include layout

local refused, paused, publishingPaused, graceUntil, longestLease, enqueued, completed, failed, retried, buried, expired, since, seenAt,
  skipped =
  read_meta(false, 'paused', 'publishingPaused', 'graceUntil', 'longestLease', 'enqueued', 'completed', 'failed', 'retried', 'dead',
    'expired', 'since', 'seenAt', 'skipped')
if refused then return refused end
local quarantined = call('ZRANGE', QUARANTINE, 0, 0, 'WITHSCORES')
local due = call('ZRANGE', DUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
local later = call('ZRANGE', DUE, '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
local nQuarantined = call('ZCARD', QUARANTINE)
local oldest = due[1] and tonumber(due[2])
if quarantined[1] then oldest = math.min(oldest or math.huge, tonumber(quarantined[2])) end
-- As in lib/lua/step.lua: after a jump of the clock, or when no worker has polled for long, deadlines prove nothing for
-- a while.
local first = call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')
local grace = whole(graceUntil) or 0
if grace > now + math.max(whole(longestLease) or 0, 30000) then grace = 0 end
local running = call('ZCARD', RUNNING)
local over = running > 0 and first[1] and now - math.max(tonumber(first[2]), grace) or 0
-- A paused queue gets no occurrences, and one whose publishing is paused.
local ahead, pending = call('ZRANGE', TICKS, 0, 0, 'WITHSCORES'), call('ZRANGE', PENDING, 0, 0, 'WITHSCORES')
local need = math.min(tonumber(ahead[2]) or math.huge, tonumber(pending[2]) or math.huge)
if paused == '1' or publishingPaused == '1' then need = now end
local function total(count) return whole(count) or 0 end
return {
  now, call('ZCOUNT', DUE, '(' .. now, '+inf'), call('ZCOUNT', DUE, '-inf', now) + nQuarantined, running,
  call('ZCARD', DEAD), nQuarantined, paused == '1' and 1 or 0, oldest and math.max(0, oldest) or -1,
  later[1] and math.min(tonumber(later[2]), 9e15) or -1, call('ZCOUNT', IDLE, now, '+inf'),
  total(enqueued), total(completed), total(failed), total(retried), total(buried), total(expired), total(since), total(seenAt),
  publishingPaused == '1' and 1 or 0, call('ZCARD', COMPLETED), math.max(0, math.min(over, 9e15)),
  total(skipped), call('ZCARD', TICKS), math.max(0, math.min(now - need, 9e15)),
}
