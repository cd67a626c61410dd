-- A page of one state, in index order: due time for delayed and due, claim for running, time of death for dead. Reads only.
-- KEYS  the shard's fixed list
-- ARGV  1 l delayed | d due | r running | x dead   2 from ms or -   3 to ms or -   4 cursor score or -   5 skip at that score
--       6 limit (1..200)
-- Reply jobs: id, score, attempts record or '', error or '', envelope or ''
-- Cost  O(log n + skip + limit)
--#include keys
--#include clock

local state, limit = ARGV[1], tonumber(ARGV[6])
local index = state == 'r' and RUNNING or state == 'x' and DEAD or DUE
local low, high = '-inf', '+inf'
if state == 'l' then low = '(' .. now elseif state == 'd' then high = now end
if state ~= 'r' then
  if ARGV[2] ~= '-' and (low == '-inf' or tonumber(ARGV[2]) > now) then low = ARGV[2] end
  if ARGV[3] ~= '-' and (high == '+inf' or tonumber(ARGV[3]) < now) then high = ARGV[3] end
end
if ARGV[4] ~= '-' then low = ARGV[4] end
local found = call('ZRANGE', index, low, high, 'BYSCORE', 'LIMIT', tonumber(ARGV[5]), limit, 'WITHSCORES')
-- Suspects are due as well; there are few of them, and they end the listing of due jobs.
if state == 'd' and #found < limit * 2 then
  local rest = call('ZRANGE', SUSPECTS, 0, limit - #found / 2 - 1, 'WITHSCORES')
  if #rest > 0 then
    for _, value in ipairs(rest) do found[#found + 1] = value end
  end
end
local out = {}
for i = 1, #found, 2 do
  local id = found[i]
  out[#out + 1] = id
  out[#out + 1] = found[i + 1]
  out[#out + 1] = call('HGET', ATTEMPTS, id) or ''
  out[#out + 1] = call('HGET', ERRORS, id) or ''
  out[#out + 1] = call('HGET', JOBS, id) or ''
end
return out
