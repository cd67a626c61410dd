-- Removes jobs of one state for good: the given ids, or the oldest ones. Never running jobs.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 state: w waiting (due and quarantined), x dead, c completed   3 most to remove (0..200)
--       4 of dead letters only those that died before (ms), or -1   then the ids, or none for the oldest ones
-- Reply text: removed, left in that state
-- Cost  O(n log n) for n <= 200
--#include keys
--#include clock
--#include layout
--#if limits
--#include envelope
--#include groups
--#include changed
--#include wake
--#end
--#include session
--#include begin
--#include erase

local seq, dead, most, before = sequence(ARGV[1]), ARGV[2] == 'x', tonumber(ARGV[3]), tonumber(ARGV[4])
local replied = begin(seq, false)
if replied then return replied end

--#if limits
check_groups()
local head = moment()
--#end
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
call('HLEN', HISTORY)
local function sweep(index, room)
  local ids = { unpack(ARGV, 5) }
  if #ids == 0 and room > 0 then
    ids = call('ZRANGE', index, '-inf', before >= 0 and dead and '(' .. before or '+inf', 'BYSCORE', 'LIMIT', 0, room)
  end
  local gone = {}
  for _, id in ipairs(ids) do
    if call('ZSCORE', index, id) then gone[#gone + 1] = id end
  end
  if #gone > 0 and index == COMPLETED then
    call('ZREM', index, unpack(gone))
    call('HDEL', HISTORY, unpack(gone))
--#if limits
  elseif #gone > 0 then
    if index == DUE then depart(unpack(gone)) end
    free(unpack(gone))
--#else
  elseif #gone > 0 then
--#end
    call('ZREM', index, unpack(gone))
    erase_unfinished(unpack(gone))
  end
  return #gone
end
local removed, remaining
if dead then
  removed = sweep(DEAD, most)
  remaining = call('ZCARD', DEAD)
elseif ARGV[2] == 'c' then
  removed = sweep(COMPLETED, most)
  remaining = call('ZCARD', COMPLETED)
else
  call('ZCARD', QUARANTINE)
  removed = sweep(DUE, most)
  removed = removed + sweep(QUARANTINE, most - removed)
  remaining = call('ZCARD', DUE) + call('ZCARD', QUARANTINE)
end
local answer = string.format('%d %d', removed, remaining)
remember(seq, answer)
--#limits wake_for_room(head)
return answer
