-- Notes jobs at a local time, before they are stored: other zone data may give them another moment. A note without a job does no harm.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 session sequence number   2 version of the zone data by which their moments were computed   then per job, at most 200: id, ms
-- Reply OK
-- Cost  O(jobs x log n)
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include session
--#include begin

local seq, version = sequence(ARGV[1]), ARGV[2]
local replied, known, walk = begin(seq, false, 'zoneData', 'zoneWalk')
if replied then return replied end

local entries = {}
for i = 3, #ARGV, 2 do
  local due, noted = tonumber(ARGV[i + 1]), tonumber(call('ZSCORE', ZONED, ARGV[i]) or nil)
  -- Another score than before: who has seen this note without a job must not take it for the same one (unzone.lua). And none goes back
  -- past who looks at them just now (zoned.lua): its job may be stored already, at an older moment.
  if noted and noted >= due and (walk or noted < due + 1000) then due = noted + 1 end
  entries[#entries + 1] = string.format('%.0f', due)
  entries[#entries + 1] = ARGV[i]
end
-- Twice as many as are added, so that those of the past go away.
local over = call('ZRANGE', ZONED, '-inf', now - 86400000, 'BYSCORE', 'LIMIT', 0, #entries)
if #over > 0 then call('ZREM', ZONED, unpack(over)) end
call('ZADD', ZONED, unpack(entries))
-- The next process with newer zone data looks at all of them again.
if known and version < known then call('HSET', META, 'zoneData', version) end
-- So does who looks at them just now, and may have passed these (zoned.lua).
if walk and version < string.match(walk, '^%S*') then call('HDEL', META, 'zoneWalk') end
remember(seq, 'OK')
return 'OK'
