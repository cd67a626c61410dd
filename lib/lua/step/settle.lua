-- Settles the runs that ended: groups of completed jobs first, then all other outcomes one by one.
-- Needs the endings. Gives `lost`, `superseded` and the counts; reads `followups`, `records` and `nQuarantined` again.

local touched, emptied, at = {}, {}, 13 + nRenewals * 3
if not answer and settles then
  for _ = 1, nGroups do
    local token, n = ARGV[at + 1], tonumber(ARGV[at + 2])
    local claim = tonumber(token)
    local ids = { unpack(ARGV, at + 3, at + 2 + n) }
    at = at + 2 + n
    -- One more than are to be settled: most often these are all that the claim holds, and then nothing else need be asked.
    local members, held, scores = call('ZRANGE', RUNNING, token, token, 'BYSCORE', 'LIMIT', 0, n + 1), {}, nil
    if #members > n then scores = call('ZMSCORE', RUNNING, unpack(ids)) end
    for _, id in ipairs(members) do held[id] = token end
    local after = followups > 0 and call('HMGET', FOLLOWUPS, unpack(ids))
    local ended = {}
    for i = 1, n do
      local score = held[ids[i]]
      if not score then
        if scores then score = scores[i] else score = call('ZSCORE', RUNNING, ids[i]) end
      end
      if score and tonumber(score) == claim and not (after and after[i]) then
        ended[#ended + 1] = ids[i]
      elseif not owns(ids[i], claim, score) then
        lost[#lost + 1] = ids[i]
      elseif after and after[i] then
        follow(ids[i], after[i])
        completed = completed + 1
      else
        if keeps then keep({ ids[i] }) end
        drop(ids[i])
        completed = completed + 1
      end
    end
    if #ended > 0 then
      if keeps then keep(ended) end
      call('HDEL', JOBS, unpack(ended))
      call('ZREM', RUNNING, unpack(ended))
      --#limits free(unpack(ended))
      if records > 0 then call('HDEL', ATTEMPTS, unpack(ended)) end
      if errors > 0 then call('HDEL', ERRORS, unpack(ended)) end
      completed = completed + #ended
    end
    if nOutcomes > 0 or not scores and #ended < #members then
      touched[#touched + 1] = claim
    elseif not scores then
      emptied[#emptied + 1] = token
    end
  end
  for _ = 1, nOutcomes do
    local verb, claim, id = ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3]
    local a, b, c = ARGV[at + 4], ARGV[at + 5], tonumber(ARGV[at + 6])
    at = at + 6
    touched[#touched + 1] = claim
    local after = followups > 0 and call('HGET', FOLLOWUPS, id)
    if not owns(id, claim, call('ZSCORE', RUNNING, id)) then
      lost[#lost + 1] = id
    elseif after then
      follow(id, after) --#limits if verb == 'l' and c > 0 then give_back(id, claim) end; follow(id, after)
      superseded[#superseded + 1] = id
      if verb == 'r' or verb == 'd' and c == 1 then failed = failed + 1 end
      if verb == 'x' then expired = expired + 1 end
    else
      local charged, losses, snoozes, lostClaim, limit = read_record(call('HGET', ATTEMPTS, id))
      if verb == 'r' then
        call('ZADD', DUE, delayed_by(a), id) --#limits set_due(delayed_by(a), id, call('HGET', JOBS, id))
        call('HSET', ATTEMPTS, id, record(charged + 1, 0, snoozes, 0, limit))
        note(id, 'retry', b)
        retried, failed = retried + 1, failed + 1
      elseif verb == 's' then
        call('ZADD', DUE, delayed_by(a), id) --#limits set_due(delayed_by(a), id, call('HGET', JOBS, id))
        call('HSET', ATTEMPTS, id, record(charged, 0, snoozes + 1, 0, limit))
        local envelope = call('HGET', JOBS, id)
        if b ~= '' and envelope then
          local version, tail = version_of(b)
          call('HSET', JOBS, id, version .. string.sub(envelope, 2, rest_of(envelope) - 1) .. tail)
        end
      elseif verb == 'l' then
        local due, envelope = tonumber(a), call('HGET', JOBS, id) --#limits if c > 0 then give_back(id, claim) end; local due, envelope = tonumber(a), call('HGET', JOBS, id)
        due = math.max(due == due and due or now, now + (whole(b) or -math.huge))
        call('ZADD', DUE, due, id) --#limits set_due(due, id, envelope)
        -- It was started again: from now on a worker that lost it before is refused. And what is due at another time than its
        -- envelope says has a record, by which the next claim knows it.
        if lostClaim > 0 or due ~= due_of(envelope or '') then call('HSET', ATTEMPTS, id, record(charged, losses, snoozes, 0, limit)) end
      elseif verb == 'd' then
        bury(id, a, b)
        if c == 1 then failed = failed + 1 end
        if charged + c + snoozes > 0 or limit then
          call('HSET', ATTEMPTS, id, record(charged + c, 0, snoozes, 0, limit))
        else
          call('HDEL', ATTEMPTS, id)
        end
        --#limits depart(id)
        call('ZREM', DUE, id)
      elseif verb == 'x' then
        expired = expired + 1
        drop(id)
      end
      call('ZREM', QUARANTINE, id)
      call('ZREM', RUNNING, id)
      --#limits if verb == 'l' and c == 2 or not keeps_place(id) then free(id) end
    end
  end
  if #emptied > 0 then call('ZREM', LEASES, unpack(emptied)) end
  for _, claim in ipairs(touched) do
    end_lease_if_empty(claim_name(claim))
  end
  if moves then followups, records, nQuarantined = call('HLEN', FOLLOWUPS), call('HLEN', ATTEMPTS), call('ZCARD', QUARANTINE) end
end
