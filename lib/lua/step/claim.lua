-- Claims: a resend reads its batch again, a new call takes jobs from the quarantine or from `due`.
-- Needs take() and tell_of(). Gives `claim` and `batch`, moves the isolator's role, and remembers the answer.

if answer then
  -- A resend: read the batch again by its claim number, so that it never holds a job that has gone since.
  local number, names = string.match(answer, '^(%d+) ?(.*)$')
  claim = tonumber(number)
  for id in string.gmatch(names, '[^\n]+') do
    if string.sub(id, 1, 1) == '\t' then superseded[#superseded + 1] = string.sub(id, 2) else lost[#lost + 1] = id end
  end
  local ids = claim > 0 and call('ZRANGE', RUNNING, number, number, 'BYSCORE', 'LIMIT', 0, 200) or {}
  if #ids > 0 then
    local envelopes, texts = call('HMGET', JOBS, unpack(ids)), call('HMGET', ATTEMPTS, unpack(ids))
    for i, id in ipairs(ids) do
      if envelopes[i] then
        tell_of(id, nil, texts[i], envelopes[i])
      end
    end
  end
elseif not paused then
  if nQuarantined > 0 and (flag('v') or quarantineLimit > 0) then
    -- The role is for a process that has to stop its queues; one that holds nothing may take suspects whoever has it.
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
