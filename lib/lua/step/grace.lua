-- Decides which deadlines count: after a jump of the clock, or when no worker has polled for long, none does for the time of one lease.
-- Needs `longest`. Gives `grace`, until when, and `proved`, up to when deadlines prove anything; and what recovery will count.

local firstLease, takenBack, grace, proved = -1, 0, whole(graceUntil) or 0, nil
-- A script has at most 200 local variables at a time.
do
  local seen, graceBegan = whole(seenAt), whole(graceFrom) or 0
  -- It began by a clock that was ahead, and was set back while nothing was leased: deadlines up to then would all be proved, also those
  -- that are yet to come.
  if graceBegan > now then
    graceBegan = -1
    put('graceFrom', now)
  end
  -- A clock that goes back by less has not jumped: it is set right like this again and again, also while a grace lasts.
  local CORRECTED_MS = 1000
  -- The clock was set right several times while a grace lasted, or the field is damaged. It ends one lease from now at the latest.
  if grace > now + longest + CORRECTED_MS then
    grace = now + lease
    put('graceUntil', grace)
  end
  -- Deadlines up to here are proved: those before now, or, while a grace begins or lasts, those before one that has passed.
  proved = now >= grace and now or -1
  if seen and (now < seen - CORRECTED_MS or now > seen + lease / 2) then
    -- The clock jumped, and nobody paused, if a call was refused as late since the last step, or if this call left long ago, or is yet
    -- to leave, by the clock that its process knows. Then a grace goes on, although its end seems to have passed: a second jump during a
    -- grace would take jobs from live workers.
    -- Where nothing is leased no deadline has to be proved: steps of workers that rest are rare.
    if call('ZCARD', LEASES) > 0 then
      local late = whole(lateAt) or 0
      local jumped = late > seen and late <= now + CORRECTED_MS or ASKED > 0 and math.abs(now - ASKED) > lease / 4
      proved = not jumped and grace > 0 and now >= grace and graceBegan or -1
      if not jumped and now < grace and now > seen then
        -- A pause during a grace prolongs it; beginning anew would keep dead workers' jobs where all steps are this rare.
        grace = math.max(grace, now + math.floor(lease / 2))
      else
        grace = now + lease
        put('graceFrom', now)
      end
      put('graceUntil', grace)
    end
    if now < seen then
      -- Entries in `idle` are of the clock as it was before. Those of processes that died would be the latest for as long as the clock went
      -- back, so the dead would be woken, and one of them named leader. A live process writes its entry again when it polls.
      redis.pcall('DEL', IDLE)
      mark_changed() -- Who rests enters again.
      put('leader', '')
      leader = nil
--#if limits
      -- Times in `ring` are of that clock, too, also until when groups are at a limit: see rewind() and widen() in step/begin-turns.lua.
      limits.rewound, limits.widened = '0 ', exact(LINE) .. ' '
      call('HSET', META, 'rewound', limits.rewound, 'widened', limits.widened)
--#end
    end
  end
  if not seen or now < seen or now > seen + math.min(1000, lease / 8) then put('seenAt', now) end
end
