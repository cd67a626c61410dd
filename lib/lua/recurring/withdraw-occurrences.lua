-- Takes back occurrences of schedules that have not begun: the named ones, and those on one page of what is due. The records name only
-- the newest ones; the others are found where they wait, so that nobody has to note them.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 session sequence number   2 how many jobs the page has (0..1000); 0: there is only what is named   3 it begins behind this due
--       time, -inf for the first one   4 and behind this id of that time   5 how many schedules (1..200)   then per schedule: its id, of
--       the page none that was made for a later time (in base 36), nor that is due later (ms), and until which time (in base 36) those that
--       it was made for were due: what goes of them counts as missed   then the ids that are named, at most 500   then per schedule when
--       its record was read (ms), so that what was enqueued since stays; older processes do not say that
-- Reply text: per schedule how many it took back and how many of them it counted, of those the first time and the last one, with a `:`
--       between these and a comma between schedules; unless this was the last page also the due time and the id behind which the next one
--       begins
-- Cost  O((page + named) x log n + schedules)
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include envelope
--#if limits
--#include groups
--#include changed
--#include wake
--#end
--#include record
--#include session
--#include begin
--#include erase
--#include withdraw
--#include behind

local seq, most, schedules = sequence(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[5])
local replied, skipped = begin(seq, false, 'skipped')
if replied then return replied end

--#if limits
check_groups()
local head = moment()
--#end
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
call('HLEN', SCHEDULES)
local wanted, named, latest_due = {}, 6 + 4 * schedules, -math.huge
for i = 6, named - 1, 4 do
  local due_by = tonumber(ARGV[i + 2])
  wanted[ARGV[i]] = { latest = ARGV[i + 1], due_by = due_by, was_due = ARGV[i + 3], count = 0, missed = 0, first = '', last = '' }
  latest_due = math.max(latest_due, due_by)
end
-- Ids of schedules have no braces, and ids of users do not begin with one.
local function parsed(id)
  return string.match(id, '^{([^}]*)}(.*)$')
end

-- Of times in base 36.
local function is_later(one, other)
  if #one ~= #other then return #one > #other end
  return one > other
end

local ids, read = {}, {}
for i = named, #ARGV do
  local into = tonumber(ARGV[i]) and read or ids
  into[#into + 1] = ARGV[i]
end
for i, at in ipairs(read) do wanted[ARGV[2 + 4 * i]].read = tonumber(at) end

-- Of a schedule that was removed meanwhile and made again, which has the same ids, or asked for since: nothing due before was. What is
-- enqueued at a time to come is as old as it was, by a clock that was set back.
local function is_newer(id)
  local of, due = wanted[parsed(id)], tonumber(call('ZSCORE', DUE, id) or nil)
  if not of or not of.read or not due or due < of.read then return false end
  local made = time_at(call('HGET', JOBS, id) or '', 3)
  return made and made > of.read and made <= now
end

local page, goes_on = {}, false
if most > 0 then
  local from = place_behind(DUE, ARGV[3], ARGV[4])
  page = call('ZRANGE', DUE, from, from + most - 1, 'WITHSCORES')
  goes_on = #page == 2 * most
end
for i = 1, #page, 2 do
  local due = tonumber(page[i + 1])
  if due > latest_due then
    goes_on = false
    break
  end
  local schedule, at = parsed(page[i])
  local of = schedule and wanted[schedule]
  if of and due <= of.due_by and not is_later(at, of.latest) then ids[#ids + 1] = page[i] end
end
local older = {}
for _, id in ipairs(ids) do
  if not is_newer(id) then older[#older + 1] = id end
end
local _, found = withdraw(older)
for id in pairs(found) do
  local schedule, at = parsed(id)
  local of = wanted[schedule]
  if of then
    of.count = of.count + 1
    if not is_later(at, of.was_due) then
      of.missed = of.missed + 1
      if of.first == '' or is_later(of.first, at) then of.first = at end
      if is_later(at, of.last) then of.last = at end
    end
  end
end
local counts, all = {}, 0
for i = 6, named - 1, 4 do
  local of, field = wanted[ARGV[i]], '{' .. ARGV[i] .. '}'
  counts[#counts + 1] = string.format('%d:%d:', of.count, of.missed) .. of.first .. ':' .. of.last
  all = all + of.missed
  if of.missed > 0 and call('HEXISTS', SCHEDULES, field) == 1 then
    call('HSET', SCHEDULES, 'missed' .. field, (whole(call('HGET', SCHEDULES, 'missed' .. field)) or 0) + of.missed)
  end
end
if all > 0 then call('HSET', META, 'skipped', (whole(skipped) or 0) + all) end
local answer = table.concat(counts, ',')
if goes_on then answer = answer .. ' ' .. page[#page] .. ' ' .. page[#page - 1] end
remember(seq, answer)
--#limits wake_for_room(head)
return answer
