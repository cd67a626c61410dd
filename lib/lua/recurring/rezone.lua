-- Moves a waiting job to another moment of a local time, which its header says: only if nobody has changed it since it was read.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 session sequence number   2 id   3 its envelope as it was read   4 when it is due (ms), or '' for a waiting job, due or not: newer zone
--       data move only what waits where older ones put it   5 the new moment (ms)
--       6 header and payload as lib/job/envelope.ts wrote them
-- Reply text `outcome state due` (s moved, r running, x dead, n notFound; states as in enqueue), or c when it is another one by now
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
--#include wake

local seq, id, read, was, due, content = sequence(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end

local head = head_of_due()
--#limits check_groups()
call('HLEN', ATTEMPTS); call('ZCARD', IDLE); call('ZCARD', ZONED)
local place, waits = place_of(id)
local answer = 'c'
if place ~= 'w' then
  answer = NOT_WAITING[place] .. ' 0'
elseif (not was or waits == was) and call('HGET', JOBS, id) == read then
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
