-- Tells all about schedules that are to move to another shard. Reads only.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 the state these keys must be in   2 most bytes   then ids (1..200)
-- Reply per schedule, as many as fit but at least one: id, when it needs more occurrences (ms), its record, the occurrence that began
--       last or '', how many were missed or '', how many overlapped or '', the moment
--       of its last pause or '', the one when it was made or '', how many occurrences it has stored ahead or ''
-- Cost  O(ids), plus the length of their payloads
--#include keys
--#include schedule-keys
--#include clock
--#include layout

local refused = begin_moving(ARGV[1])
if refused then return refused end
local most, bytes, out = tonumber(ARGV[2]), 0, {}
for i = 3, #ARGV do
  local id, field = ARGV[i], '{' .. ARGV[i] .. '}'
  local values = call('HMGET', SCHEDULES, field, 'floor' .. field, 'missed' .. field, 'overlapped' .. field, 'paused' .. field, 'since' .. field,
    'ahead' .. field)
  bytes = bytes + #(values[1] or '')
  if bytes > most and #out > 0 then break end
  out[#out + 1] = id
  -- One of which a process was told needs them since then.
  out[#out + 1] = call('ZSCORE', PENDING, id) or call('ZSCORE', TICKS, id) or ''
  for n = 1, 7 do out[#out + 1] = values[n] or '' end
end
return out
