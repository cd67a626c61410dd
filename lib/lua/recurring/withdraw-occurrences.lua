-- Takes back occurrences of a schedule that have not begun: the named ones, and those on one page of what is due. The record names only
-- the newest ones; the others are found where they wait, so that nobody has to note them.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 schedule id   3 of the page none that was made for a later time (in base 36)   4 nor that is due
--       later (ms)   5 how many jobs the page has (1..1000)   6 it begins behind this due time, -inf for the first one   7 and behind this
--       id of that time   then the ids that are named, at most 100
-- Reply text: how many it took back; unless this was the last page also the due time and the id behind which the next one begins
-- Cost  O(page x log n)
--#include keys
--#include clock
--#include layout
--#if limits
--#include envelope
--#include groups
--#end
--#include session
--#include begin
--#include erase
--#include withdraw
--#include behind

local seq, schedule, latest, due_by, most = sequence(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local replied = begin(seq, false)
if replied then return replied end

--#limits check_groups()
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
local from = place_behind(DUE, ARGV[6], ARGV[7])
local page = call('ZRANGE', DUE, from, from + most - 1, 'WITHSCORES')
local prefix, ids = '{' .. schedule .. '}', {}
for i = 8, #ARGV do ids[#ids + 1] = ARGV[i] end
local goes_on = #page == 2 * most
for i = 1, #page, 2 do
  if tonumber(page[i + 1]) > due_by then
    goes_on = false
    break
  end
  local at = string.sub(page[i], 1, #prefix) == prefix and string.sub(page[i], #prefix + 1)
  if at and (#at < #latest or (#at == #latest and at <= latest)) then ids[#ids + 1] = page[i] end
end
local answer = string.format('%d', (withdraw(ids)))
if goes_on then answer = answer .. ' ' .. page[#page] .. ' ' .. page[#page - 1] end
remember(seq, answer)
return answer
