-- A page of the groups of a queue that have jobs, in the order of `ring` (those at a limit, those in line, those that wait), and then those
-- of which jobs only run, which `ring` need not have. Of a group without jobs that has a window nothing tells the name: it is left out.
-- Reads only.
-- KEYS  the shard's fixed list
-- ARGV  1 where the page begins: '' or what the page before replied; a number of groups where an older library has replied
--       2 limit (1..100): so many groups are looked at
-- Reply where the next page begins or '', then per group a list: base, waiting, due, running, until when it is at a limit or -1, the stored
--       text of one of its jobs up to the payload or ''
-- Cost  O(limit) times O(priorities in use x log n) commands of O(log n)
--#include keys
--#include clock
--#include layout
--#include envelope
--#include groups
--#include behind

adopts = true
local refused = read_meta(false)
if refused then return refused end
read_limits()
local limit = math.min(100, tonumber(ARGV[2]))
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

local out = { '' }
local function add(base, score)
  local lowest, due = exact(tonumber(base) - 9), 0
  local waiting, running = call('ZCOUNT', GROUPED, lowest, base), call('ZCOUNT', HELD, lowest, base)
  if waiting + running == 0 then return end
  for priority in string.gmatch(limits.priorities, '%d') do due = due + count_due(exact(tonumber(base) - tonumber(priority))) end
  local waits = call('ZRANGE', GROUPED, lowest, base, 'BYSCORE', 'LIMIT', 0, 1)[1]
  local runs = call('ZRANGE', HELD, lowest, base, 'BYSCORE', 'LIMIT', 0, 1)[1]
  -- With `block` a job may wait for its next attempt and keep the place of its group.
  if running == 1 and call('ZSCORE', DUE, runs) then running = 0 end
  local envelope = call('HGET', JOBS, waits and string.sub(waits, 8) or runs) or ''
  local head = string.sub(envelope, 1, math.min((string.find(envelope, '\n', 1, true) or LONGEST_HEAD + 1) - 1, LONGEST_HEAD))
  out[#out + 1] = { base, waiting, due, running, score and score < LINE and score - AT_LIMIT or -1, head }
end

local behind = string.match(ARGV[1], '^r(%d+)$')
if not behind then
  -- Not by a number: of those that stand before it some may be gone by now.
  local score, base = string.match(ARGV[1], '^p(%-?%d+)_(%d+)$')
  local skip = score and place_behind(RING, score, base) or tonumber(ARGV[1]) or 0
  local found = call('ZRANGE', RING, skip, skip + limit - 1, 'WITHSCORES')
  for n = 1, #found / 2 do add(found[2 * n - 1], tonumber(found[2 * n])) end
  limit = limit - #found / 2
  if limit == 0 and call('ZCARD', RING) > skip + #found / 2 then
    out[1] = 'p' .. exact(tonumber(found[#found])) .. '_' .. found[#found - 1]
    return out
  end
end
-- `held` has no jobs without a group, whose places end with 9.
local last = tonumber(behind) or 9
for _ = 1, limit do
  local place = call('ZRANGE', HELD, '(' .. exact(last), '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
  if not place then return out end
  local base = base_of(tonumber(place))
  if not call('ZSCORE', RING, base) then add(base) end
  last = tonumber(base)
end
if call('ZCOUNT', HELD, '(' .. exact(last), '+inf') > 0 then out[1] = 'r' .. exact(last) end
return out
