-- Cancels the runs of a schedule's occurrences, as cancel.lua does, on one page of what runs.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 schedule id   3 how many runs the page has (1..1000)   4 it begins behind this claim, -inf for the
--       first one   5 and behind this id of that claim
-- Reply text: how many of them it cancelled; unless this was the last page also the claim and the id behind which the next one begins
-- Cost  O(page + log n)
--#include keys
--#include clock
--#include layout
--#include session
--#include begin
--#include behind

local seq, schedule, most = sequence(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local replied = begin(seq, false)
if replied then return replied end

call('HLEN', FOLLOWUPS)
local from = place_behind(RUNNING, ARGV[4], ARGV[5])
local page = call('ZRANGE', RUNNING, from, from + most - 1, 'WITHSCORES')
local prefix, count = '{' .. schedule .. '}', 0
for i = 1, #page, 2 do
  if string.sub(page[i], 1, #prefix) == prefix then
    call('HSET', FOLLOWUPS, page[i], '!')
    count = count + 1
  end
end
local answer = string.format('%d', count)
if #page == 2 * most then answer = answer .. ' ' .. page[#page] .. ' ' .. page[#page - 1] end
remember(seq, answer)
return answer
