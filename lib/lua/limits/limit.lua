-- Sets the limits of a queue, or asks for them. They hold from the next step of any worker on; what runs is not stopped.
-- Of a queue with shards the first one decides which call comes after which, by the revision that it gives to what it has; the others take
-- what is newer than what they have: lib/shards/spread-limits.ts.
-- KEYS  the shard's fixed list
-- ARGV  1 the limits, as shared/groups.lua reads them, '' for none, or ? to ask   2 c from the settings of an application, o by an
--       operator, whom settings do not override, r gives them back: those of the application that booted last hold at once,
--       w says only that it is a queue with limits, t takes what the first shard has   3 the revision that was read, '' or missing for
--       any; of t the one to take; of a question one that another shard has   of t also 4 who set them, c or o   5 what applications said last
-- Reply outcome (s set, k kept: an operator set others, u as they were, n it is no queue with limits, c another call has come between),
--       the limits before, o when an operator set those that hold, else c, what applications said last, the revision, the limits that hold
-- Cost  O(log n)
--#include keys
--#include clock
--#include layout
--#include envelope
--#include groups
--#include changed
--#include wake

adopts = true
local asked, by, read = ARGV[1], ARGV[2], whole(ARGV[3])
local refused, before, setBy, needs, leader, paused, wokenAt, ofSettings, revision, lastClaim =
  read_meta(false, 'limits', 'limitsBy', 'needs', 'leader', 'paused', 'wokenAt', 'limitsOfSettings', 'limitsRevision', 'claim')
if refused then return refused end
before, setBy, ofSettings, revision = before or '', setBy or 'c', ofSettings or '', whole(revision) or 0
local function answer(outcome, holds)
  return { outcome, before, setBy, ofSettings, exact(revision), holds }
end
-- By the clock, so that what was set before the queue was removed, and comes late, is older than what was set since. Limits that were
-- stored by a library without revisions have none until they are set again.
local function next_revision()
  return math.max(TIME[1] * 1000000 + TIME[2], revision + 1, (asked == '?' and read or 0) + 1)
end

if asked == '?' then
  if not is_limited(needs) then return answer('n', before) end
  -- This shard has lost what it was told last, as a failover may do, and what it has is the newest once more.
  if read and revision < read then
    revision = next_revision()
    call('HSET', META, 'limitsRevision', exact(revision))
  end
  return answer('u', before)
end
if by == 't' then
  if read <= revision then return answer('u', before) end
elseif read and read ~= revision then
  return answer('c', before)
end
if by == 'c' and setBy == 'o' then
  if ofSettings ~= asked or revision == 0 then revision = next_revision() end
  ofSettings = asked
  call('HSET', META, 'limitsOfSettings', asked, 'limitsRevision', exact(revision))
  return answer(before == asked and 'u' or 'k', before)
end
check_groups()
if by == 'w' then
  if begin_groups(needs) then mark_changed() end
  return answer('u', before)
end
local former = ofSettings
if by == 'r' then
  asked, by = setBy == 'c' and before or ofSettings, 'c'
elseif by == 'o' and setBy == 'c' then
  ofSettings = before
end
if not is_limited(needs) and asked == '' and by ~= 't' then return answer('n', '') end
local head = is_limited(needs) and moment() or nil
begin_groups(needs)
if by == 't' then
  by, ofSettings, revision = ARGV[4], ARGV[5], read
else
  if by == 'c' then ofSettings = asked end
  if before ~= asked or setBy ~= by or ofSettings ~= former or revision == 0 then revision = next_revision() end
end
setBy = by
call('HSET', META, 'limits', asked, 'limitsBy', by, 'limitsOfSettings', ofSettings, 'limitsRevision', exact(revision))
limits = nil
read_limits()
if before ~= asked then
  for _, name in ipairs({ ' rate:', ' groupRate:' }) do
    -- A rate that holds from now on has counted nothing of what runs, so that gives back no start: it would be one of another job.
    if string.find(' ' .. asked, name, 1, true) and not string.find(' ' .. before, name, 1, true) then
      call('HSET', META, 'rated', lastClaim or 0)
    end
  end
  if not limits.blocks then
    -- Jobs that kept the places of their groups while they wait give them up. What is beyond this number has them until it starts.
    local ids, waiting = call('ZRANGE', HELD, 0, 999), {}
    for n, due in ipairs(#ids > 0 and call('ZMSCORE', DUE, unpack(ids)) or {}) do
      if due then waiting[#waiting + 1] = ids[n] end
    end
    if #waiting > 0 then call('ZREM', HELD, unpack(waiting)) end
  end
  -- Groups at a limit are looked at anew by the steps that follow, some with each: widen() in step/begin-turns.lua.
  if call('ZCOUNT', RING, '(' .. exact(AT_LIMIT + now), '(' .. exact(LINE)) > 0 then
    limits.widened = exact(LINE) .. ' '
    call('HSET', META, 'widened', limits.widened)
  end
end
mark_changed()
wake_for_new_head(head, leader, paused, wokenAt)
return answer(before == asked and 'u' or 's', asked)
