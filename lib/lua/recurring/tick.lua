-- Writes what follows in the life of a schedule: its record, the occurrences that this record counts as made, and when it needs more.
-- Compare and set: only if the record is still the one that the caller has read. So a process may die at any point, and several may
-- compute the same.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 session sequence number   2 schedule id   3 the record as it was read, or '' for none   4 the record that follows
--       5 when it needs more occurrences (ms)   6 missed ones to count   7 from when on the record counts as changed (ms), or ''
--       8 how many ids follow whose occurrences go (0..100)   9 how many of these, the first ones, were due: they go unless they have
--       begun, and count as missed   10 of what was made due by then (ms of schedules) nothing begins that asks (begin-occurrence.lua), ''
--       leaves that as it is; of a pause, `<ms> <by how much schedules are ahead of the clock>`: also of what comes due until it is
--       written; of a schedule that was not there when it is made   11 how many occurrences are stored ahead by then   then these ids, then
--       per new occurrence (at most 100): id, due ms, expiry (i<ms after due> or -; and ` @` with its place in a queue with groups, as in
--       enqueue.lua), content as lib/job/envelope.ts wrote it
-- Reply w written, and per id that counts as missed when it goes 1 if it went, else 0; c the record has changed, or this comes too late;
--       o some of the others to go do not wait any more, or have begun: then per id of them 1 if that is so, else 0, and nothing is
--       written; b publishing is paused
-- Cost  O(occurrences x log n), plus the length of the record
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include envelope
--#limits --#include groups
--#include record
--#include session
--#include begin
--#include erase
--#include withdraw
--#include ahead
--#include changed
--#include wake

local seq, id, read, follows, before, nGone = sequence(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[7]), tonumber(ARGV[8])
--#if limits
-- All occurrences of a schedule have one place.
local place = string.match(ARGV[14 + nGone] or '', ' @(.*)$') or ''
adopts = place ~= '' and SHARD == ''
--#end
local replied, leader, paused, wokenAt, enqueued, since, publishingPaused, skipped = begin(seq, false, 'leader', 'paused', 'wokenAt',
  'enqueued', 'since', 'publishingPaused', 'skipped')
if replied then return replied end

--#if limits
check_groups()
local isFirst = adopts and publishingPaused ~= '1' and (call('HGET', SCHEDULES, '{' .. id .. '}') or '') == read
local begun = isFirst and begin_groups(call('HGET', META, 'needs'))
--#end
local field, head = '{' .. id .. '}', head_of_due() --#limits local field, head = '{' .. id .. '}', not begun and moment() or nil
local stored = call('HGET', SCHEDULES, field) or ''
local missedBefore = whole(call('HGET', SCHEDULES, 'missed' .. field)) or 0
call('ZCARD', TICKS); call('ZCARD', PENDING); call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE)
call('ZCARD', UNIQUE); call('ZCARD', IDLE)

local nDue, first = tonumber(ARGV[9]), 12 + nGone
local pausedAt, aheadBy = string.match(ARGV[10], '^(%S*) ?(%S*)$')
-- Not what is asked for in this millisecond, which may be after it.
if aheadBy ~= '' then pausedAt = math.max(tonumber(pausedAt), now - 1 + tonumber(aheadBy)) end
-- What it takes for an occurrence to come may have begun by now, and then it counts.
local isLate = before and now >= before
local answer = (stored ~= read or isLate) and 'c' or publishingPaused == '1' and #ARGV >= first and 'b' or 'w'
-- What was cancelled, or has run before its time, does not come back: the record that follows has to name it.
if answer == 'w' then
  local over, any = {}, false
  for i = 12 + nDue, first - 1 do
    local waits = is_unbegun(ARGV[i])
    over[#over + 1] = waits and '0' or '1'
    any = any or not waits
  end
  if any then answer = 'o' .. table.concat(over) end
end
if answer == 'w' then
  local anew, named, created = {}, {}, 0
  for i = first, #ARGV, 4 do anew[ARGV[i]] = true end
  for i = 12, first - 1 do named[#named + 1] = ARGV[i] end
  local _, gone = withdraw(named, anew)
  local missed = tonumber(ARGV[6])
  for i = 1, nDue do
    answer = answer .. (gone[named[i]] and '1' or '0')
    if gone[named[i]] then missed = missed + 1 end
  end
  for i = first, #ARGV, 4 do
    local occurrence, due, expiry = ARGV[i], tonumber(ARGV[i + 1]), tonumber(string.match(ARGV[i + 2], '^i(%d+)$')) --#limits local occurrence, due, expiry = ARGV[i], tonumber(ARGV[i + 1]), tonumber(string.match(ARGV[i + 2], '^i(%d+)'))
    if gone[occurrence] or call('HEXISTS', JOBS, occurrence) == 0 then
--#if limits
      local envelope = sealed(ARGV[i + 3], stamp_at(due, expiry and due + expiry, place))
      call('HSET', JOBS, occurrence, envelope)
      set_due(due, occurrence, envelope)
--#else
      call('HSET', JOBS, occurrence, sealed(ARGV[i + 3], stamp_of(due, expiry and due + expiry)))
      call('ZADD', DUE, due, occurrence)
--#end
      created = created + 1
    end
  end
  call('HSET', SCHEDULES, field, follows)
  call('ZADD', TICKS, ARGV[5], id)
  call('ZREM', PENDING, id)
  count_ahead(field, tonumber(ARGV[11]))
  if pausedAt ~= '' then call('HSET', SCHEDULES, (read == '' and 'since' or 'paused') .. field, pausedAt) end
  if missed > 0 then call('HSET', SCHEDULES, 'missed' .. field, missedBefore + missed) end
  local fields = { 'enqueued', (whole(enqueued) or 0) + created, 'skipped', (whole(skipped) or 0) + missed }
  if not since then fields[5], fields[6], fields[7], fields[8] = 'layout', LAYOUT, 'since', now end
  call('HSET', META, unpack(fields))
end
remember(seq, answer)
local isWritten = string.sub(answer, 1, 1) == 'w'
if isWritten then mark_changed() end
if isWritten and #ARGV >= first then wake_for_new_head(head, leader, paused, wokenAt) end --#limits if isWritten and (#ARGV >= first or nGone > 0) then wake_for_new_head(head, leader, paused, wokenAt) end
return answer
