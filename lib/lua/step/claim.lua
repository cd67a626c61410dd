-- Claims jobs from the quarantine or from `due`.
-- Needs take(). Gives `claim` and `batch`, moves the isolator's role, and remembers the answer.

if not answer and not paused then
  if nQuarantined > 0 and (flag('v') or quarantineLimit > 0) then
    -- The role is for a process that has to stop its queues. One that runs nothing may take from the quarantine without it.
    if not waited and (not isolator or isolator == me) then
      if not isolator or isolatorTill < now + ROLE_MS / 2 then
        put('isolator', me .. ' ' .. string.format('%.0f', now + ROLE_MS))
      end
      isolator = me
    end
    if quarantineLimit > 0 then
      local ids = waited and call('ZRANGE', QUARANTINE, '-inf', now - waited, 'BYSCORE', 'LIMIT', 0, quarantineLimit)
        or call('ZRANGE', QUARANTINE, 0, quarantineLimit - 1)
      -- A few together at the first loss; from the second one at a time, so that the culprit is found.
      local few = {}
      for i, text in ipairs(#ids > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}) do
        local losses = select(2, read_record(text or ''))
        if losses > 1 then
          if i == 1 then few[1] = ids[1] end
          break
        end
        few[i] = ids[i]
      end
      if #few > 0 then take(QUARANTINE, few); moves = true end
      nQuarantined = call('ZCARD', QUARANTINE)
    end
  elseif isolator == me and nQuarantined == 0 then
    put('isolator', '')
    isolator = nil
  end
  if claims and quarantineLimit == 0 then
    local second = tonumber(firstTwo[4])
    if not moves and not (second and second <= now) then
      take(DUE, { firstTwo[1] }, { firstTwo[2] })
      headLeft = second
    else
      local found = call('ZRANGE', DUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, claimLimit, 'WITHSCORES')
      if #found > 0 then
        local ids, scores = {}, {}
        for i = 1, #found / 2 do ids[i], scores[i] = found[2 * i - 1], found[2 * i] end
        take(DUE, ids, scores)
        moves = true
      end
    end
  end
end
if not answer and (settles or claim > 0 or IN_DOUBT) then
  local names = table.concat(lost, '\n')
  if #superseded > 0 then names = names .. '\n\t' .. table.concat(superseded, '\n\t') end
  remember(seq, string.format('%.0f ', claim) .. names)
end
