-- Recovers the jobs of workers that died: whose lease is over goes to the quarantine. Only in a sweep.
-- Needs `longest`. Gives `firstLease`, `takenBack` and `proved`, up to when deadlines prove anything. After a jump of
-- the clock, or when no worker has polled for long, deadlines prove nothing for the time of one lease.

local seen, grace, graceBegan = whole(seenAt), whole(graceUntil) or 0, whole(graceFrom) or 0
-- A clock that goes back by less has not jumped: it is set right like this again and again, also while a grace lasts.
local CORRECTED_MS = 1000
if grace > now + longest + CORRECTED_MS then grace = 0 end
-- Deadlines up to here are proved: those before now, or, while a grace begins or lasts, those before one that has passed.
local proved = now >= grace and now or -1
if seen and (now < seen - CORRECTED_MS or now > seen + lease / 2) then
  -- The clock jumped, and nobody paused, if a call was refused as late since the last step, or if this call left long ago by the clock
  -- that its process knows. Then a grace goes on, although its end seems to have passed: a second jump during a grace would take jobs
  -- from live workers.
  local late = whole(lateAt) or 0
  local jumped = late > seen and late <= now + CORRECTED_MS or ASKED > 0 and now - ASKED > lease / 4
  proved = not jumped and grace > 0 and now >= grace and graceBegan or -1
  if not jumped and now < grace and now > seen then
    -- A pause during a grace prolongs it; beginning anew would keep dead workers' jobs where all steps are this rare.
    grace = math.max(grace, now + math.floor(lease / 2))
  else
    grace = now + lease
    put('graceFrom', now)
  end
  put('graceUntil', grace)
  if now < seen then
    -- Entries in `idle` are of the clock as it was before. Those of processes that died would be the latest for as long as the clock went
    -- back, so the dead would be woken, and one of them named leader. A live process writes its entry again when it polls.
    redis.pcall('DEL', IDLE)
    put('leader', '')
    leader = nil
  end
end
if not seen or now < seen or now > seen + math.min(1000, lease / 8) then put('seenAt', now) end
local firstLease, takenBack = -1, 0
if sweeps then
  -- A clock that went back must not keep a dead worker's jobs for as long as it went.
  -- The mark in the fraction stays, or who killed its process before would not be charged.
  local far = call('ZRANGE', LEASES, '(' .. now + longest + 1, '+inf', 'BYSCORE', 'LIMIT', 0, SWEEP, 'WITHSCORES')
  for i = 1, #far, 2 do call('ZADD', LEASES, 'XX', now + longest + mark_of(tonumber(far[i + 1])), far[i]) end
  -- Nor must the jobs that came to the quarantine before it went back wait for as long.
  local ahead = nQuarantined > 0 and call('ZRANGE', QUARANTINE, '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, SWEEP) or {}
  for _, id in ipairs(ahead) do call('ZADD', QUARANTINE, 'XX', now, id) end
  if proved >= 0 and not answer then
    local over = call('ZRANGE', LEASES, '-inf', proved, 'BYSCORE', 'LIMIT', 0, SWEEP, 'WITHSCORES')
    local room = SWEEP
    for i = 1, #over, 2 do
      if room == 0 then break end
      local claim, deadline = over[i], tonumber(over[i + 1])
      -- A name that is no number was not written by us, and asking for it would fail every sweep of this shard.
      if not (string.match(claim, '^%-?%d+$') or string.match(claim, '^%-?inf$')) then
        call('ZREM', LEASES, claim)
        claim = '0'
      end
      local ids = call('ZRANGE', RUNNING, claim, claim, 'BYSCORE', 'LIMIT', 0, room)
      local sole = is_sole(deadline) and #ids == 1
      room = room - #ids
      for _, id in ipairs(ids) do
        local after = followups > 0 and call('HGET', FOLLOWUPS, id)
        if after then
          follow(id, after)
        else
          local charged, losses, snoozes, _, limit = read_record(call('HGET', ATTEMPTS, id))
          call('ZADD', QUARANTINE, now, id)
          call('HSET', ATTEMPTS, id, record(charged + (sole and 1 or 0), losses + 1, snoozes, tonumber(claim), limit))
          call('ZREM', RUNNING, id)
          nQuarantined, takenBack = nQuarantined + 1, takenBack + 1
        end
      end
      end_lease_if_empty(claim)
    end
    -- A running id whose lease is gone from `leases` would never come back: give its claim one to run out.
    local oldest = call('ZRANGE', RUNNING, 0, 0, 'WITHSCORES')
    if oldest[1] then
      local claim = claim_name(tonumber(oldest[2]))
      -- No claim has such a number, so no worker would ever renew or settle it.
      if tonumber(claim) ~= tonumber(oldest[2]) then call('ZADD', RUNNING, 'XX', claim, oldest[1]) end
      if not call('ZSCORE', LEASES, claim) then call('ZADD', LEASES, now + lease, claim) end
    end
    if #over > 0 then records = call('HLEN', ATTEMPTS) end
  end
  if windows > 0 then
    local gone = call('ZRANGE', UNIQUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEEP)
    if #gone > 0 then call('ZREM', UNIQUE, unpack(gone)) end
  end
  local soonest = call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')
  if soonest[1] then firstLease = math.max(math.floor(tonumber(soonest[2])) + 1, grace) end
end
