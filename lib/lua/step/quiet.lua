-- Tells whether the shard is quiet, so that the worker may rest: nothing runs or is in quarantine, nothing is due soon, and no sweep has
-- anything left to remove. Only in a sweep that asked for due jobs.
-- Needs everything before it. Gives `quiet`: what CHANGED holds, a blank, and until when, ms, nothing happens by itself; '' for not quiet.

local quiet = ''
-- A worker that rests looks again 5 s before the head is due, and then once more at its time.
local SOON_MS = 10000
if sweeps and not answer and claimLimit > 0 and claimed == 0 and firstLease < 0 and nQuarantined == 0
  and (not head or head > now + SOON_MS) then --#limits and (not head and call('ZCARD', DUE) == 0 or head and head > now + SOON_MS) then
  -- Who rests must be told of what comes, so it must have an entry that lasts for as long.
  local held = is_long(redis.pcall('ZSCORE', IDLE, me)) and changed_at()
  local till = head or 9e15
  local function is_kept(index, most, age)
    local oldest = call('ZRANGE', index, 0, 0, 'WITHSCORES')[2]
    if oldest then till = math.min(till, call('ZCARD', index) > most and 0 or oldest + age) end
  end
  is_kept(DEAD, deadKept, deadAge)
  if keeps then is_kept(COMPLETED, tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV])) end
  -- Those that end meanwhile no longer count, and go with the next sweep.
  if windows > 0 and call('ZCOUNT', UNIQUE, '-inf', now) > 0 then till = 0 end
  --#limits if call('ZCOUNT', RING, exact(OVER), exact(OVER + now)) > 0 then till = 0 end
  if held then quiet = held .. string.format(' %.0f', math.max(0, till)) end
end
