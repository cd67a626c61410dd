-- Tells jobs at a local time, for a process with newer zone data; and notes that one has looked at all of them.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 version of the caller's zone data   2 only ids that are not due before (ms)   3 how many of those to pass over
--       4 most (0..200); 0 notes the version instead
-- Reply now, version that was noted or '', then per job: its id, its score, when it is due or '', its envelope or ''
-- Cost  O(n + log n) for n <= 200, plus the length of their payloads. Jobs that do not wait are left out
--#include keys
--#include schedule-keys
--#include clock
--#include layout

local version, from, pass, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local refused, known = read_meta(false, 'zoneData')
if refused then return refused end
call('ZCARD', ZONED)
if most == 0 then
  if (known or '') < version and call('ZCARD', ZONED) > 0 then call('HSET', META, 'zoneData', version) end
  return { now, known or '' }
end
local out = { now, known or '' }
local found = call('ZRANGE', ZONED, from, '+inf', 'BYSCORE', 'LIMIT', pass, most, 'WITHSCORES')
for i = 1, #found, 2 do
  local id = found[i]
  out[#out + 1] = id
  out[#out + 1] = found[i + 1]
  out[#out + 1] = call('ZSCORE', DUE, id) or ''
  out[#out + 1] = call('HGET', JOBS, id) or ''
end
return out
