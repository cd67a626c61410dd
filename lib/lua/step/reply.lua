-- Writes `meta` once, wakes, and replies.
-- Needs everything before it.

if completed > 0 then put('completed', (whole(completedBefore) or 0) + completed) end
if retried > 0 then put('retried', (whole(retriedBefore) or 0) + retried) end
if buried > 0 then put('dead', (whole(deadBefore) or 0) + buried) end
if expired > 0 then put('expired', (whole(expiredBefore) or 0) + expired) end
if failed > 0 then put('failed', (whole(failedBefore) or 0) + failed) end
do
  -- Leases of this length may run until `longestLeaseUntil`. Then it shrinks to what is needed: it is how far the clock may go back
  -- before a dead worker's leases are cut, and one extend() by a day must not set that for ever.
  local till = whole(longestUntil) or 0
  if given >= (whole(longestBefore) or 0) then
    if longest ~= whole(longestBefore) then put('longestLease', longest) end
    if till < now + longest / 2 or till > now + longest then put('longestLeaseUntil', now + longest) end
  elseif sweeps and not answer and proved == now and (now > till or till > now + longest) then
    local last = call('ZRANGE', LEASES, 0, 0, 'REV', 'WITHSCORES')
    local needed = math.max(given, last[1] and math.ceil(tonumber(last[2])) - now or 0)
    put('longestLease', needed)
    put('longestLeaseUntil', now + needed)
  end
end
if #write > 0 then call('HSET', META, unpack(write)) end
if woken == true then wake(leader, me) elseif woken then tell(woken) end

local roles = (leader == me and 'w' or '') .. (isolator == me and 'v' or '') .. (paused and 'p' or '')
  .. ((not since or IN_DOUBT) and 'n' or '') .. (byteLimit == 0 and 'c' or '')
--#limits roles = roles .. (limits.counts and 'l' or '') .. (limits.count and call('ZCARD', RUNNING) >= limits.count and 'f' or '')
head = head and math.max(0, math.min(head, 9e15)) or -1
-- Each text more costs the caller time. But Lua reads a new text byte by byte: where jobs are longer than 1 KiB on average, that costs more.
local jobs = joins and joins <= 1024 * filled / 3 and table.concat(batch, '\30') or batch
local oldest = nQuarantined > 0 and tonumber(call('ZRANGE', QUARANTINE, 0, 0, 'WITHSCORES')[2]) or -1
oldest = math.max(-1, math.min(oldest, 9e15))
return { now * 1000 + TIME[2] % 1000, claim, head, firstLease, roles, idle, nQuarantined, lost, aborted, left, jobs, superseded, oldest, quiet }
