-- A page of one state, in index order: due time for delayed and due, claim for running, time of death for dead, of
-- completion for completed; of one moment by the bytes of their ids. Reads only.
-- KEYS  the shard's fixed list
-- ARGV  1 l delayed | d due | r running | x dead | c completed   2 from ms or -   3 to ms or -   4 score of the last job of the
--       page before, as that page gave it, or - for none   5 its id, or '' for what comes before all ids   6 limit (1..200)   7 most bytes
-- Reply 1 when there are more else 0, then per job, as many as fit but at least one: id, score (in quarantine `s` and since
--       when it is there: it has no due time in its index), attempts record or '', error or '', envelope or ''
-- Cost  O(log n) commands of O(log n), and O(limit)
--#include keys
--#include clock
--#include layout

local state, cursor, after, limit, most = ARGV[1], ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local refused = read_meta(false)
if refused then return refused end

--#include behind

local out, bytes = { 0 }, 0
local room = limit
local function tell(index, first, last, mark)
  if first >= last then return end
  local found = room > 0 and call('ZRANGE', index, first, math.min(first + room, last) - 1, 'WITHSCORES') or {}
  if first + #found / 2 < last then out[1] = 1 end
  for i = 1, #found, 2 do
    local id, record, failure, envelope = found[i], nil, '', nil
    if state == 'c' then
      record, envelope = string.match(call('HGET', HISTORY, id) or '', '^([^\n]*)\n(.*)$')
    else
      record, failure, envelope = call('HGET', ATTEMPTS, id), call('HGET', ERRORS, id) or '', call('HGET', JOBS, id)
    end
    record, envelope = record or '', envelope or ''
    bytes = bytes + #id + #record + #failure + #envelope
    if bytes > most and room < limit then
      out[1], room = 1, 0
      return
    end
    local n = #out
    out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = id, mark .. found[i + 1], record, failure, envelope
    room = room - 1
  end
end

local quarantined = string.match(cursor, '^s(.+)$')
if not quarantined then
  local index = state == 'r' and RUNNING or state == 'x' and DEAD or state == 'c' and COMPLETED or DUE
  local low, high = '-inf', '+inf'
  if state == 'l' then low = '(' .. now elseif state == 'd' then high = now end
  if state ~= 'r' then
    if ARGV[2] ~= '-' and (low == '-inf' or tonumber(ARGV[2]) > now) then low = ARGV[2] end
    if ARGV[3] ~= '-' and (high == '+inf' or tonumber(ARGV[3]) < now) then high = ARGV[3] end
  end
  local first = 0
  if string.sub(low, 1, 1) == '(' then
    first = call('ZCOUNT', index, '-inf', string.sub(low, 2))
  elseif low ~= '-inf' then
    first = call('ZCOUNT', index, '-inf', '(' .. low)
  end
  -- The jobs of the page before may have left the state since, because they are due by now.
  if cursor ~= '-' then first = math.max(first, place_behind(index, cursor, after)) end
  tell(index, first, call('ZCOUNT', index, '-inf', high), '')
end
-- Jobs in quarantine are due as well, whatever their time: they end the listing of due jobs. The mark of their score tells the cursor so.
if state == 'd' then
  tell(QUARANTINE, quarantined and place_behind(QUARANTINE, quarantined, after) or 0, call('ZCARD', QUARANTINE), 's')
end
return out
