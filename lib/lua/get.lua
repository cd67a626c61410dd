-- One job as it stands. Reads only.
-- KEYS  the shard's fixed list
-- ARGV  1 id
-- Reply state (l delayed, d due, r running, x dead, c completed and kept), score in its index (in quarantine -inf: it has no
--       due time there), attempts record or '', error or '', envelope or ''; nil when there is no such job
-- Cost  O(log n)
--#include keys
--#include clock
--#include layout

local id = ARGV[1]
local refused = read_meta(false)
if refused then return refused end
local state, score = 'r', call('ZSCORE', RUNNING, id)
if not score then
  score = call('ZSCORE', DUE, id)
  state = score and tonumber(score) > now and 'l' or 'd'
end
if not score then state, score = 'd', call('ZSCORE', QUARANTINE, id) and '-inf' end
if not score then state, score = 'x', call('ZSCORE', DEAD, id) end
if not score then
  score = call('ZSCORE', COMPLETED, id)
  if not score then return nil end
  local record, envelope = string.match(call('HGET', HISTORY, id) or '', '^([^\n]*)\n(.*)$')
  return { 'c', score, record or '', '', envelope or '' }
end
return { state, score, call('HGET', ATTEMPTS, id) or '', call('HGET', ERRORS, id) or '', call('HGET', JOBS, id) or '' }
