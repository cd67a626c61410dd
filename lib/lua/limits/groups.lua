-- A page of the groups of a queue, in the order of `ring`: those at a limit, those in line, those that wait. Reads only.
-- KEYS  the shard's fixed list
-- ARGV  1 skip so many   2 limit (1..100)
-- Reply 1 when there are more else 0, then per group a list: base, waiting, due, running, until when it is at a limit or -1, the stored text
--       of its first job up to the payload or ''
-- Cost  O(limit) times O(priorities in use x log n) commands of O(log n)
--#include keys
--#include clock
--#include layout
--#include envelope
--#include groups

adopts = true
local refused = read_meta(false)
if refused then return refused end
read_limits()
local skip, limit = tonumber(ARGV[1]), math.min(100, tonumber(ARGV[2]))
local LONGEST_HEAD = 65536

-- How many members from the `first` on to the `last` of these places are due: they stand in the order of their due times.
local function count_due(place)
  local low = call('ZCOUNT', GROUPED, '-inf', '(' .. place)
  local from, high = low, call('ZCOUNT', GROUPED, '-inf', place)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = call('ZRANGE', GROUPED, middle, middle)[1]
    if (time_at(member, 1) or 0) <= now then low = middle + 1 else high = middle end
  end
  return low - from
end

local out = { 0 }
local found = call('ZRANGE', RING, skip, skip + limit, 'WITHSCORES')
if #found > 2 * limit then out[1] = 1 end
for n = 1, math.min(limit, #found / 2) do
  local base, score = found[2 * n - 1], tonumber(found[2 * n])
  local lowest, due = exact(tonumber(base) - 9), 0
  for priority in string.gmatch(limits.priorities, '%d') do due = due + count_due(exact(tonumber(base) - tonumber(priority))) end
  local first = call('ZRANGE', GROUPED, lowest, base, 'BYSCORE', 'LIMIT', 0, 1)[1]
  local envelope = first and call('HGET', JOBS, string.sub(first, 8)) or ''
  local head = string.sub(envelope, 1, math.min((string.find(envelope, '\n', 1, true) or LONGEST_HEAD + 1) - 1, LONGEST_HEAD))
  out[#out + 1] = { base, call('ZCOUNT', GROUPED, lowest, base), due, call('ZCOUNT', HELD, lowest, base),
    score < LINE and score - AT_LIMIT or -1, head }
end
return out
