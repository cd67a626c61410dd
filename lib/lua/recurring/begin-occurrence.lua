-- Asks whether a claimed occurrence may begin while an earlier one of its schedule may still be alive. One that does not run is counted,
-- and ends with its run, as one does that is cancelled: it is neither completed nor expired.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 schedule id   2 id of the occurrence   3 claim that holds it   4 m it is missed and does not run, unless it is
--       the one that began last; s if another one is alive, this one does not run; w if another one is alive, this one waits
--       5 for when it was made, or when it was made due since if that is later (ms of schedules)   then with m ids of later ones, at most
--       100: unless one of them is stored or kept, nothing takes its place
-- Reply g it may begin, b another one is alive, m it is missed, l another claim holds it, or none, or it ends with this run; n none of the later
--       ones is there. Who got no answer asks again
-- Cost  O(log n + ids)
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include record
--#include followups

local id, occurrence, claim, asked = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local refused, skipped = read_meta(true, 'skipped')
if refused then return refused end

local field = '{' .. id .. '}'
local floor = 'floor' .. field
call('HLEN', ATTEMPTS)
local known = call('HEXISTS', SCHEDULES, field) == 1

-- A call that comes late must not end a run that has begun since.
if tonumber(call('ZSCORE', RUNNING, occurrence) or nil) ~= claim then return 'l' end

-- With the mark that ends it, so that it is counted once: a process may die before it says that the run is over.
local function skip(what)
  if call('HEXISTS', FOLLOWUPS, occurrence) == 1 then return end
  if known then call('HSET', SCHEDULES, what .. field, (whole(call('HGET', SCHEDULES, what .. field)) or 0) + 1) end
  call('HSET', META, 'skipped', string.format('%.0f', (whole(skipped) or 0) + 1))
  call('HSET', FOLLOWUPS, occurrence, '!')
end

-- A run that crashed finds its own name here.
local holder = call('HGET', SCHEDULES, floor)
if holder == occurrence then return 'g' end
-- A lost lease says nothing of a handler, also where it is charged: its process may have died before that began. What began and is alive
-- has the floor; where its schedule is gone, or was made anew since, nobody knows, and it runs. So does what was interrupted, which has a
-- record (withdraw.lua).
local text = call('HGET', ATTEMPTS, occurrence)
local charged, losses, snoozes, _, limit = read_record(text)
-- It does not run, as a call before has said whose answer was lost, or it was cancelled: so it stays, whatever has ended since.
local is_over = is_cancelled(call('HGET', FOLLOWUPS, occurrence))
local since, _, at = whole(call('HGET', SCHEDULES, 'since' .. field)), made_by(occurrence)
local is_left = not is_over and (not known or (since and at < since))
if is_left and text then return 'g' end
local has_begun = charged > losses or snoozes > 0
-- A worker held it when its schedule was paused, so nobody found it where others wait. What was asked for since is not meant.
local paused = whole(call('HGET', SCHEDULES, 'paused' .. field))
local is_paused = paused and tonumber(ARGV[5]) <= paused and not has_begun
if is_paused then asked = 'm' end
local is_there = #ARGV == 5 or is_paused or is_over
for i = 6, #ARGV do is_there = is_there or call('HEXISTS', JOBS, ARGV[i]) == 1 or call('ZSCORE', COMPLETED, ARGV[i]) end
if asked == 'm' and not is_there then return 'n' end
if asked == 'm' then
  skip('missed')
  return 'm'
end
-- The run that has the floor is alive while its job is stored and no dead letter.
if holder and call('HEXISTS', JOBS, holder) == 1 and not call('ZSCORE', DEAD, holder) then
  if asked == 's' then skip('overlapped') end
  -- It has not begun, so the loss of its lease tells nothing of it: it waits where others do, or each time it asks it would come from the
  -- quarantine, for which a process stops its queues. A dead letter that is to run once more keeps what it has lost.
  if asked == 'w' and losses > 0 and not has_begun and not limit then call('HDEL', ATTEMPTS, occurrence) end
  return 'b'
end
if is_over then return 'l' end
if known then call('HSET', SCHEDULES, floor, occurrence) end
return 'g'
