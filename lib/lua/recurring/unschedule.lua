-- Stops a schedule, so that nobody makes more occurrences, or removes it once they were taken back: only if the record is still the one
-- that the caller has read.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 session sequence number   2 schedule id   3 the record as it was read   4 the same, paused; '' removes it
--       5 with which score it has no need of more occurrences   6 missed ones to count   7 of what was made due by then (ms of schedules)
--       nothing begins that asks, or ''
-- Reply w written, `w <missed> <overlapped> <the occurrence that began last>` removed, with what it had counted; c the record has changed
--       or is gone
-- Cost  O(log n), plus the length of the record
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include session
--#include begin
--#include ahead

local seq, id, read, stopped, never = sequence(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local missed, pausedAt = tonumber(ARGV[6]), ARGV[7]
local replied, skipped = begin(seq, false, 'skipped')
if replied then return replied end

local field = '{' .. id .. '}'
local answer = call('HGET', SCHEDULES, field) == read and 'w' or 'c'
call('ZCARD', TICKS); call('ZCARD', PENDING)
if answer == 'w' then
  call('ZREM', PENDING, id)
  if stopped ~= '' then
    call('HSET', SCHEDULES, field, stopped)
    if pausedAt ~= '' then call('HSET', SCHEDULES, 'paused' .. field, pausedAt) end
    if missed > 0 then
      call('HSET', SCHEDULES, 'missed' .. field, (whole(call('HGET', SCHEDULES, 'missed' .. field)) or 0) + missed)
      call('HSET', META, 'skipped', (whole(skipped) or 0) + missed)
    end
    call('ZADD', TICKS, never, id)
  else
    call('ZREM', TICKS, id)
    count_ahead(field, 0)
    local had = call('HMGET', SCHEDULES, 'missed' .. field, 'overlapped' .. field, 'floor' .. field)
    answer = string.format('w %d %d ', whole(had[1]) or 0, whole(had[2]) or 0) .. (had[3] or '')
    call('HDEL', SCHEDULES, field, 'floor' .. field, 'missed' .. field, 'overlapped' .. field, 'paused' .. field, 'since' .. field)
  end
end
remember(seq, answer)
return answer
