-- Tells jobs at a local time, for a process with newer zone data; and notes that one has looked at all of them.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 version of the caller's zone data   2 it begins behind this score, -inf for the first one   3 and behind this id of that
--       score   4 most (0..200); 0 notes the version instead   5 of the last call: the walk that the first one told
-- Reply now, version that was noted, or with which somebody looks at them who has newer ones, or ''; the walk: while it stands in `meta`
--       nobody with older zone data has noted a job since it began; then per job: its id, its score, when it is due or '', its envelope or ''
-- Cost  O(n + log n) for n <= 200, plus the length of their payloads. Jobs that do not wait are left out
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include behind

local version, score, after, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local refused, known, walk = read_meta(false, 'zoneData', 'zoneWalk')
if refused then return refused end
known, walk = known or '', walk or ''
local notes, walker = call('ZCARD', ZONED), string.match(walk, '^%S*')
if most == 0 then
  if known < version and notes > 0 and walk == ARGV[5] then
    call('HSET', META, 'zoneData', version)
    call('HDEL', META, 'zoneWalk')
  end
  return { now, known, walk }
end
if score == '-inf' and known < version and walker < version and notes > 0 then
  walk = string.format('%s %.0f', version, now)
  call('HSET', META, 'zoneWalk', walk)
end
local out = { now, walker > version and walker or known, walk }
local from = score == '-inf' and 0 or place_behind(ZONED, score, after)
local found = call('ZRANGE', ZONED, from, from + most - 1, 'WITHSCORES')
for i = 1, #found, 2 do
  local id = found[i]
  out[#out + 1] = id
  out[#out + 1] = found[i + 1]
  out[#out + 1] = call('ZSCORE', DUE, id) or ''
  out[#out + 1] = call('HGET', JOBS, id) or ''
end
return out
