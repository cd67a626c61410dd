-- Tells the schedules of a shard, those first that need more occurrences first. Reads only.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 id of the only one that is wanted, or ''   2 most (1..200)   3 behind this score, or ''   4 behind this id of that score
-- Reply now, then per schedule: its id, its score, its record, the occurrence that began last or '', how many were missed, how many
--       overlapped
-- Cost  O(n + log n) for n <= 200, plus the length of their payloads
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include behind

local only, most, score, after = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local refused = read_meta(false)
if refused then return refused end

local found
if only ~= '' then
  found = { only, call('ZSCORE', TICKS, only) or '' }
else
  local from = score == '' and 0 or place_behind(TICKS, score, after)
  found = call('ZRANGE', TICKS, from, from + most - 1, 'WITHSCORES')
end
local out = { now }
for i = 1, #found, 2 do
  local field = '{' .. found[i] .. '}'
  local values = call('HMGET', SCHEDULES, field, 'floor' .. field, 'missed' .. field, 'overlapped' .. field)
  if values[1] then
    out[#out + 1] = found[i]
    out[#out + 1] = found[i + 1]
    out[#out + 1] = values[1]
    for n = 2, 4 do out[#out + 1] = values[n] or '' end
  end
end
return out
