-- Jobs that somebody means to change: the given ids, or those due in a range, page by page. Reads only.
-- KEYS  the shard's fixed list
-- ARGV  1 i the given ids | a those due in the range, the earliest first | z the latest first   2 from ms or -   3 to ms, which is
--       outside, or -   4 score of the last job of the page before, as that page gave it, or - for none   5 its id or ''
--       6 limit (1..200)   then the ids
-- Reply now, 1 when there are more else 0, jobs due in the range, then per job: id, state (l delayed, d due, r running, x dead,
--       - none), due time or '' for one that has none. Jobs in quarantine have none and are in no range
-- Cost  O(log n) commands of O(log n), and O(limit)
--#include keys
--#include clock
--#include layout
--#include place
--#include behind

local mode, from, to, cursor, after, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local refused = read_meta(false)
if refused then return refused end

if mode == 'i' then
  local out = { now, 0, 0 }
  for i = 7, #ARGV do
    local place, due = place_of(ARGV[i])
    local state = place == 'w' and ((due and due > now) and 'l' or 'd') or place == 'n' and '-' or place
    local n = #out
    out[n + 1], out[n + 2], out[n + 3] = ARGV[i], state, due and string.format('%.17g', due) or ''
  end
  return out
end

local index = DUE
local first = from == '-' and 0 or call('ZCOUNT', index, '-inf', '(' .. from)
local last = call('ZCOUNT', index, '-inf', to == '-' and '+inf' or '(' .. to)
local total = math.max(0, last - first)
if cursor ~= '-' then
  local behind = place_behind(index, cursor, after)
  if mode == 'a' then
    first = math.max(first, behind)
  else
    local at = call('ZSCORE', index, after)
    last = math.min(last, (at and tonumber(at) == tonumber(cursor)) and behind - 1 or behind)
  end
end
local more = last - first > limit and 1 or 0
local room = limit
if mode == 'z' then first = math.max(first, last - room) end
local found = last > first and call('ZRANGE', index, first, math.min(first + room, last) - 1, 'WITHSCORES') or {}
local out = { now, more, total }
for i = 1, #found, 2 do
  local at = mode == 'z' and #found - i or i
  local n = #out
  out[n + 1], out[n + 2], out[n + 3] = found[at], tonumber(found[at + 1]) > now and 'l' or 'd', found[at + 1]
end
return out
