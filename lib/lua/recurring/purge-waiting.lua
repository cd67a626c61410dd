-- Removes the jobs that wait on one page of them, but not what schedules have made ahead: occurrences of a time to come that have not begun.
-- Those are told by their ids, so nothing else of them is read. Without schedules remove.lua does it.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 session sequence number   2 how many jobs the page has (1..200)   3 most to remove (0..200)   4 it begins behind this due time,
--       -inf for the first one   5 and behind this id of that time   6 by how many ms the times of schedules are ahead of the clock
-- Reply text: `removed,left` with those that it passed over; unless this was the last page also the due time and the id behind which the
--       next one begins
-- Cost  O(page x log n)
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

local seq, most, room, score, after, moved = sequence(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5], tonumber(ARGV[6])
local replied = begin(seq, false)
if replied then return replied end

--#if limits
check_groups()
local head = moment()
--#end
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE); call('ZCARD', QUARANTINE)
call('HLEN', SCHEDULES)
-- One whose schedule is gone would never run otherwise, nor be taken back: it is a job like others.
local function is_ahead(id)
  local field, time = made_by(id)
  return field and time > now + moved and call('HEXISTS', SCHEDULES, field) == 1 and is_unbegun(id)
end

local from = place_behind(DUE, score, after)
local page, gone, looked = call('ZRANGE', DUE, from, from + most - 1, 'WITHSCORES'), {}, 0
while looked < #page and #gone < room do
  local id = page[looked + 1]
  if not is_ahead(id) then gone[#gone + 1] = id end
  looked = looked + 2
end
local goes_on = looked == 2 * most or looked < #page
if looked > 0 then score, after = page[looked], page[looked - 1] end
if #gone > 0 then
  --#limits depart(unpack(gone)); free(unpack(gone))
  call('ZREM', DUE, unpack(gone))
end
if not goes_on and #gone < room then
  local ids = call('ZRANGE', QUARANTINE, '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, room - #gone)
  if #ids > 0 then
    --#limits free(unpack(ids))
    call('ZREM', QUARANTINE, unpack(ids))
    for _, id in ipairs(ids) do gone[#gone + 1] = id end
  end
end
if #gone > 0 then erase_unfinished(unpack(gone)) end
local answer = string.format('%d,%d', #gone, call('ZCARD', DUE) + call('ZCARD', QUARANTINE))
if goes_on or (#gone == room and call('ZCARD', QUARANTINE) > 0) then answer = answer .. ' ' .. score .. ' ' .. after end
remember(seq, answer)
--#limits wake_for_room(head)
return answer
