-- Changes the state of these keys (lib/shards/shard-state.ts), if it is the one that the caller expects.
-- KEYS  the shard's fixed list, and the keys of schedules
-- ARGV  1 the state to write, '' for none   2 conditions: u no state counts only where nobody ever was, r nothing runs,
--       e nothing is stored: no job in any state, kept ones included, no uniqueness window, no schedule, no note of a job at a local
--       time   then the states that may be there, '' for none
-- Reply outcome (y done, n another state is there, u an unsharded queue was here, b the condition r or e does not hold),
--       the state that was there, jobs running
-- Cost  O(log n)
--#include keys
--#include schedule-keys
--#include clock
--#include layout
--#include changed

local to, conditions = ARGV[1], ARGV[2]
local function condition(letter) return string.find(conditions, letter, 1, true) ~= nil end
local meta = call('HMGET', META, 'layout', 'needs')
local state, others = shard_state(meta[2])
local refused = unknown(meta[1], others)
if refused then return refused end
local running = call('ZCARD', RUNNING)
if state == '' and condition('u') and call('HLEN', META) > 0 then return { 'u', state, running } end
local accepted = false
for i = 3, #ARGV do accepted = accepted or ARGV[i] == state end
if not accepted then return { 'n', state, running } end
if condition('r') and running > 0 then return { 'b', state, running } end
if condition('e') then
  local jobs = running + call('ZCARD', DUE) + call('ZCARD', QUARANTINE) + call('ZCARD', DEAD) + call('ZCARD', COMPLETED)
  local notes = call('ZCARD', TICKS) + call('ZCOUNT', ZONED, '(' .. now, '+inf')
  if jobs + notes + call('ZCOUNT', UNIQUE, '(' .. now, '+inf') > 0 then return { 'b', state, running } end
end
if to ~= '' then
--#if limits
  call('HSET', META, 'layout', LAYOUT, 'needs', 'shards:' .. to .. (is_limited(meta[2]) and ' limits' or ''))
elseif is_limited(meta[2]) then
  call('HSET', META, 'needs', 'limits')
--#else
  call('HSET', META, 'layout', LAYOUT, 'needs', 'shards:' .. to)
--#end
elseif meta[2] then
  call('HDEL', META, 'needs')
end
mark_changed()
return { 'y', state, running }
