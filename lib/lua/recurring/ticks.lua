-- Tells which schedules need more occurrences now. Other processes are not told of them for a moment: no lease, only less doubled work.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 most schedules (1..20)   2 for how many ms others are not told of them
-- Reply now, when the next one needs some in ms or '' without any, since when the shard is there in ms or '', what CHANGED holds or '', then
--       per schedule: its id, its record
-- Cost  O(n log n) for n <= 20, plus the length of their payloads. A paused queue, or one that takes no new jobs, answers none
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include changed

local refused, paused, publishingPaused, since = read_meta(false, 'paused', 'publishingPaused', 'since')
if refused then return refused end

local most, untold = tonumber(ARGV[1]), tonumber(ARGV[2])
local found = {}
if paused ~= '1' and publishingPaused ~= '1' then
  found = call('ZRANGE', TICKS, '-inf', now, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
end
call('ZCARD', PENDING); call('HLEN', SCHEDULES)
local head = call('ZRANGE', TICKS, 0, 0, 'WITHSCORES')
local out = { now, head[2] or '', since or '', '' }
if #found > 0 then
  local ids, fields, later, was = {}, {}, {}, {}
  for i = 1, #found, 2 do
    local id = found[i]
    ids[#ids + 1] = id
    fields[#fields + 1] = '{' .. id .. '}'
    later[i], later[i + 1] = now + untold, id
    was[i], was[i + 1] = found[i + 1], id
  end
  local records = call('HMGET', SCHEDULES, unpack(fields))
  call('ZADD', PENDING, 'NX', unpack(was))
  call('ZADD', TICKS, 'XX', unpack(later))
  for i, id in ipairs(ids) do
    if records[i] then
      out[#out + 1] = id
      out[#out + 1] = records[i]
    else
      -- An index without a record is no schedule.
      call('ZREM', TICKS, id)
      call('ZREM', PENDING, id)
    end
  end
end
out[4] = changed_at() or ''
return out
