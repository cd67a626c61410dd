-- Recovers the jobs of workers that died: whose lease is over goes to the quarantine. Only in a sweep.
-- Needs `longest`, `grace` and `proved`. Counts in `takenBack`, and sets `firstLease`.

if sweeps then
  do
    -- A clock that went back must not keep a dead worker's jobs for as long as it went.
    -- The mark in the fraction stays, or who killed its process before would not be charged.
    local far = call('ZRANGE', LEASES, '(' .. now + longest + 1, '+inf', 'BYSCORE', 'LIMIT', 0, SWEEP, 'WITHSCORES')
    for i = 1, #far, 2 do call('ZADD', LEASES, 'XX', now + longest + mark_of(tonumber(far[i + 1])), far[i]) end
    -- Nor must the jobs that came to the quarantine before it went back wait for as long.
    local ahead = nQuarantined > 0 and call('ZRANGE', QUARANTINE, '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, SWEEP) or {}
    for _, id in ipairs(ahead) do call('ZADD', QUARANTINE, 'XX', now, id) end
  end
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
