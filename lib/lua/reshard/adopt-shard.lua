-- Takes over the counters of a shard that will end, and whether the queue is paused. Repeated calls take them over only
-- once.
-- KEYS  the shard's fixed list
-- ARGV  1 the state these keys must be in   2 flags: p the queue is paused, b its publishing is   3 name of the shard that will end, or '' for none
--       4 since, ms   then field, number...
-- Reply OK
-- Cost  O(1)
--#include keys
--#include clock
--#include layout

local refused, sinceBefore, took = begin_moving(ARGV[1], 'since', 'took:' .. ARGV[3])
if refused then return refused end
if string.find(ARGV[2], 'p', 1, true) then call('HSET', META, 'paused', '1') end
if string.find(ARGV[2], 'b', 1, true) then call('HSET', META, 'publishingPaused', '1') end
if ARGV[3] == '' or took then return 'OK' end
local since = whole(ARGV[4]) or 0
local fields = { 'took:' .. ARGV[3], 1 }
if since > 0 then
  fields[3], fields[4] = 'since', string.format('%.0f', math.min(since, whole(sinceBefore) or since))
end
for i = 5, #ARGV, 2 do
  fields[#fields + 1] = ARGV[i]
  fields[#fields + 1] = string.format('%.0f', (whole(call('HGET', META, ARGV[i])) or 0) + (whole(ARGV[i + 1]) or 0))
end
-- With the mark in one command: an error between two would count twice.
call('HSET', META, unpack(fields))
return 'OK'
