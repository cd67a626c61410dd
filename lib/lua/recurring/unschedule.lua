-- Removes a schedule, with its occurrences that have not begun: only if the record is still the one that the caller has read.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 session sequence number   2 schedule id   3 the record as it was read   4 1 = also cancels those that run
--       then the ids of its occurrences, at most 101
-- Reply text `outcome removed` (w removed, c the record has changed or is gone)
-- Cost  O(occurrences x log n)
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include session
--#include begin
--#include erase
--#include withdraw

local seq, id, read, running = sequence(ARGV[1]), ARGV[2], ARGV[3], ARGV[4] == '1'
local replied = begin(seq, false)
if replied then return replied end

local field = '{' .. id .. '}'
local stored = call('HGET', SCHEDULES, field)
call('ZCARD', TICKS); call('ZCARD', PENDING); call('ZCARD', DUE); call('HLEN', JOBS); call('HLEN', ATTEMPTS)
call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE); call('ZCARD', RUNNING); call('HLEN', FOLLOWUPS)
local answer = 'c 0'
if stored == read then
  answer = 'w ' .. withdraw(5, #ARGV - 4, running)
  call('ZREM', TICKS, id)
  call('ZREM', PENDING, id)
  call('HDEL', SCHEDULES, field, 'floor' .. field, 'missed' .. field, 'overlapped' .. field)
end
remember(seq, answer)
return answer
