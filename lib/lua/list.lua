-- A page of one state, in index order: due time for delayed and due, claim for running, time of death for dead, of
-- completion for completed. Reads only.
-- KEYS  the shard's fixed list
-- ARGV  1 l delayed | d due | r running | x dead | c completed   2 from ms or -   3 to ms or -   4 cursor score or -
--       5 skip at that score   6 limit (1..200)
-- Reply jobs: id, score (of a suspect -inf: it has no due time there), attempts record or '', error or '', envelope or ''
-- Cost  O(log n + skip + limit)
--#include keys
--#include clock
--#include layout

local state, cursor, skip, limit = ARGV[1], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local meta = call('HMGET', META, 'layout', 'needs')
local refused = refusal(meta[1], meta[2])
if refused then return refused end
local index = state == 'r' and RUNNING or state == 'x' and DEAD or state == 'c' and COMPLETED or DUE
local low, high = '-inf', '+inf'
if state == 'l' then low = '(' .. now elseif state == 'd' then high = now end
if state ~= 'r' then
  if ARGV[2] ~= '-' and (low == '-inf' or tonumber(ARGV[2]) > now) then low = ARGV[2] end
  if ARGV[3] ~= '-' and (high == '+inf' or tonumber(ARGV[3]) < now) then high = ARGV[3] end
end
local found, among = {}, state == 'd' and cursor == '-inf'
if state == 'l' and cursor ~= '-' and tonumber(cursor) <= now then
  skip = 0 -- That page's last jobs have become due since.
elseif cursor ~= '-' then
  low = cursor
end
if not among then found = call('ZRANGE', index, low, high, 'BYSCORE', 'LIMIT', skip, limit, 'WITHSCORES') end
-- Suspects are due as well, whatever their time: they end the listing of due jobs. Their score tells the cursor so.
if state == 'd' and #found < limit * 2 then
  local from = among and skip or 0
  for _, id in ipairs(call('ZRANGE', SUSPECTS, from, from + limit - #found / 2 - 1)) do
    found[#found + 1] = id
    found[#found + 1] = '-inf'
  end
end
local out = {}
for i = 1, #found, 2 do
  local id = found[i]
  out[#out + 1] = id
  out[#out + 1] = found[i + 1]
  if state == 'c' then
    local record, envelope = string.match(call('HGET', HISTORY, id) or '', '^([^\n]*)\n(.*)$')
    for _, value in ipairs({ record or '', '', envelope or '' }) do out[#out + 1] = value end
  else
    out[#out + 1] = call('HGET', ATTEMPTS, id) or ''
    out[#out + 1] = call('HGET', ERRORS, id) or ''
    out[#out + 1] = call('HGET', JOBS, id) or ''
  end
end
return out
