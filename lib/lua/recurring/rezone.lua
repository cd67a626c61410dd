-- Moves a waiting job to another moment of a local time, which its header says: only if nobody has changed it since it was read.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 session sequence number   2 id   3 its envelope as it was read   4 when it is due (ms), or '' for a waiting job, due or not: newer zone
--       data move only what waits where older ones put it   5 the new moment (ms)
--       6 header and payload as lib/job/envelope.ts wrote them   7 version of the zone data that move it, or '': a call of an application
-- Reply text `outcome state due` (s moved, r running, x dead, n notFound; states as in enqueue), or c when it is another one by now, or
--       somebody with newer zone data looks at the jobs
-- Cost  O(log n), plus the length of the payload
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include envelope
--#limits --#include groups
--#include record
--#include session
--#include begin
--#include place
--#include changed
--#include wake

local seq, id, read, was, due, content = sequence(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local zone_data = ARGV[7]
local replied, leader, paused, wokenAt, known, walk = begin(seq, false, 'leader', 'paused', 'wokenAt', 'zoneData', 'zoneWalk')
if replied then return replied end
local is_old = zone_data ~= '' and ((known or '') > zone_data or string.match(walk or '', '^%S*') > zone_data)

local head = head_of_due()
--#limits check_groups()
call('HLEN', ATTEMPTS); call('ZCARD', IDLE); call('ZCARD', ZONED)
local place, waits = place_of(id)
local answer = 'c'
if place ~= 'w' then
  answer = NOT_WAITING[place] .. ' 0'
elseif not is_old and (not was or waits == was) and call('HGET', JOBS, id) == read then
  local version, tail = version_of(content)
  call('ZADD', DUE, due, id) --#limits set_due(due, id, read); free(id)
  call('HSET', JOBS, id, moved(version .. string.sub(read, 2, rest_of(read) - 1) .. tail, due))
  call('ZADD', ZONED, due, id)
  disown(id)
  call('ZREM', QUARANTINE, id)
  answer = 's ' .. ((waits and waits > now) and 'l' or 'd') .. string.format(' %.0f', due)
end
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer
