-- Removes notes of jobs at a local time that are gone, and tells which others may be: of these a job may just be on its way, because its
-- note comes first. So a caller names them again much later; what was noted anew meanwhile has another score by then.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 how many notes to look at (1..200)   2 behind this score, -inf for the first one   3 and behind this id of that score
--       then per note that goes, at most 200: its id, the score that was told
-- Reply score and id behind which the next call looks on, or two times '' after the last one; then per note without a job that waits or
--       runs: its id, its score
-- Cost  O(n log n) for n <= 200
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include behind

local most, score, after = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local refused = read_meta(false)
if refused then return refused end

call('HLEN', JOBS); call('ZCARD', DEAD); call('ZCARD', ZONED)
local function is_gone(id)
  return call('HEXISTS', JOBS, id) == 0 or call('ZSCORE', DEAD, id)
end

local over = {}
for i = 4, #ARGV, 2 do
  local noted = tonumber(call('ZSCORE', ZONED, ARGV[i]) or nil)
  if noted == tonumber(ARGV[i + 1]) and is_gone(ARGV[i]) then over[#over + 1] = ARGV[i] end
end
if #over > 0 then call('ZREM', ZONED, unpack(over)) end
local from = score == '-inf' and 0 or place_behind(ZONED, score, after)
local found = call('ZRANGE', ZONED, from, from + most - 1, 'WITHSCORES')
local goes_on = #found == 2 * most
local out = { goes_on and found[#found] or '', goes_on and found[#found - 1] or '' }
for i = 1, #found, 2 do
  if is_gone(found[i]) then
    out[#out + 1] = found[i]
    out[#out + 1] = found[i + 1]
  end
end
return out
