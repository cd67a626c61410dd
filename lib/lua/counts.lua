-- What one shard holds. Reads only.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  none
-- Reply now, delayed, due, running, dead, quarantined, paused 0|1, oldest due or -1, next due or -1, live sleepers,
--       enqueued, completed, failed, retried, buried, expired, since or 0, when a worker last looked or 0,
--       publishing paused 0|1, completed and kept, ms since the first lease is over that nobody has taken back, or 0,
--       skipped, schedules, for how many ms one of them has needed more occurrences, or 0; of a queue with groups
--       also: at its limit 0|1, groups in line, groups at a limit, all groups, since when the first job is due that no limit holds or -1,
--       when the next job may start or -1
-- Cost  O(log n)
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#if limits
--#include envelope
--#include groups
--#end

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
--#if limits
-- Is the queue at a limit of its own, and since when has the first head been due among the first groups in line? One that waits for a
-- limit is not late.
read_limits()
local limited = limits.count and running >= limits.count or false
if limits.max then limited = limited or window(call('HGET', RATES, ''), limits.max, limits.per).left == 0 end
local waiting = -1
for _, base in ipairs(limited and {} or call('ZRANGE', RING, exact(LINE), exact(now), 'BYSCORE', 'LIMIT', 0, 50)) do
  for priority in string.gmatch(limits.priorities, '%d') do
    local place = exact(tonumber(base) - tonumber(priority))
    local first = call('ZRANGE', GROUPED, place, place, 'BYSCORE', 'LIMIT', 0, 1)[1]
    local at = first and time_at(first, 1)
    if at and at <= now and (waiting < 0 or at < waiting) then waiting = at end
  end
end
if quarantined[1] and not limited then waiting = math.min(waiting < 0 and math.huge or waiting, tonumber(quarantined[2])) end
--#end
local function total(count) return whole(count) or 0 end
return {
  now, call('ZCOUNT', DUE, '(' .. now, '+inf'), call('ZCOUNT', DUE, '-inf', now) + nQuarantined, running,
  call('ZCARD', DEAD), nQuarantined, paused == '1' and 1 or 0, oldest and math.max(0, oldest) or -1,
  later[1] and math.min(tonumber(later[2]), 9e15) or -1, call('ZCOUNT', IDLE, now, '+inf'),
  total(enqueued), total(completed), total(failed), total(retried), total(buried), total(expired), total(since), total(seenAt),
  publishingPaused == '1' and 1 or 0, call('ZCARD', COMPLETED), math.max(0, math.min(over, 9e15)),
  total(skipped), call('ZCARD', TICKS), math.max(0, math.min(now - need, 9e15)),
--#if limits
  limited and 1 or 0, call('ZCOUNT', RING, exact(LINE), exact(now)), call('ZCOUNT', RING, '-inf', '(' .. exact(LINE)), call('ZCARD', RING), waiting,
  moment() or -1,
--#end
}
