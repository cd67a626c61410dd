-- Tells all about jobs that are to move to another shard. Reads only.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 the state these keys must be in   2 most bytes   then ids (1..200)
-- Reply per id, as many as fit but at least one: id, index (d due, b due and blocking its group, s quarantined, x dead, - none),
--       score or '', envelope or '', attempts record or '', error or '', end of its uniqueness window or '', start of its debounce burst or '',
--       when a job of this id was completed or '', what is kept of it or '', its score among the jobs at a local time or ''
-- Cost  O(ids x log n)
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#if limits
--#include envelope
--#include groups
--#end

local refused = begin_moving(ARGV[1])
if refused then return refused end
local most, bytes, out = tonumber(ARGV[2]), 0, {}
for i = 3, #ARGV do
  local id = ARGV[i]
  local index, score = 'd', call('ZSCORE', DUE, id)
  --#limits if score and call('ZSCORE', HELD, id) then index = 'b' end
  if not score then index, score = 's', call('ZSCORE', QUARANTINE, id) end
  if not score then index, score = 'x', call('ZSCORE', DEAD, id) end
  if not score then index, score = '-', '' end
  local envelope, failure, kept = call('HGET', JOBS, id) or '', call('HGET', ERRORS, id) or '', call('HGET', HISTORY, id) or ''
  bytes = bytes + #envelope + #failure + #kept
  if bytes > most and #out > 0 then break end
  local values = { id, index, score, envelope, call('HGET', ATTEMPTS, id) or '', failure, call('ZSCORE', UNIQUE, id) or '',
    call('HGET', DEBOUNCE, id) or '', call('ZSCORE', COMPLETED, id) or '', kept, call('ZSCORE', ZONED, id) or '' }
  for n = 1, 11 do out[#out + 1] = values[n] end
end
return out
