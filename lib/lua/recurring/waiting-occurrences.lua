-- Tells which occurrences of schedules wait and have not begun. Reads only.
-- KEYS  the shard's fixed list
-- ARGV  ids of occurrences (1..500)
-- Reply per id when it is due (ms), or '' for one that does not wait, or has begun
-- Cost  O(ids)
--#include keys
--#include layout
--#include envelope
--#include record
--#include withdraw

local refused = read_meta(false)
if refused then return refused end

call('HLEN', ATTEMPTS); call('HLEN', JOBS)
local out = {}
for i, id in ipairs(ARGV) do
  local due = call('ZSCORE', DUE, id)
  out[i] = due and not has_begun(id, tonumber(due)) and due or ''
end
return out
