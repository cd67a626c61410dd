-- Cancels the runs of a schedule's occurrences, as cancel.lua does, on one page of what runs; or those that have begun and wait to run
-- again, on one page of what waits.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 session sequence number   2 schedule id   3 how many jobs the page has (1..1000)   4 it begins behind this claim, or due time,
--       -inf for the first one   5 and behind this id of that score   6 1 = of what waits
-- Reply text: how many of them it cancelled; unless this was the last page also the score and the id behind which the next one begins
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
--#include place
--#include cancelling
--#include withdraw
--#include behind

local seq, schedule, most, waiting = sequence(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[6] == '1'
local replied = begin(seq, false)
if replied then return replied end

--#if limits
check_groups()
local head = moment()
--#end
call('ZCARD', RUNNING); call('ZCARD', QUARANTINE); call('ZCARD', DEAD); call('HLEN', FOLLOWUPS); call('HLEN', SCHEDULES)
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
local index = waiting and DUE or RUNNING
local from = place_behind(index, ARGV[4], ARGV[5])
local page = call('ZRANGE', index, from, from + most - 1, 'WITHSCORES')
local prefix, count = '{' .. schedule .. '}', 0
for i = 1, #page, 2 do
  local id = page[i]
  if string.sub(id, 1, #prefix) == prefix and not (waiting and is_unbegun(id)) then
    if waiting then cancel_one(id, false) else call('HSET', FOLLOWUPS, id, '!') end
    count = count + 1
  end
end
local answer = string.format('%d', count)
if #page == 2 * most then answer = answer .. ' ' .. page[#page] .. ' ' .. page[#page - 1] end
remember(seq, answer)
--#limits wake_for_room(head)
return answer
