-- Claims jobs from the quarantine or from `due`: take() puts some under a new claim, what follows says which.
-- Needs the endings. Gives `claim` and `batch`, and tell_of(), which adds a job to it; moves the isolator's role, and remembers the
-- answer.

local claim, batch, filled = 0, {}, 0
-- Of claimed jobs that were due at another time than their envelopes say: that time and the id. Nothing else keeps it for a resend.
local postponed = {}
local firstDue
-- Bytes of all claimed jobs while they can be one text of the reply, else false (step/reply.lua).
local joins = 0
local function tell_of(id, due, text, envelope)
  due = due or string.format('%.0f', due_of(envelope) or now)
  firstDue = firstDue or due
  local attempts = text and string.match(text, '^%d+ %d+ %d+ %d+ ?%d*$') -- A damaged record must not hide the envelope.
  batch[filled + 1], batch[filled + 2], batch[filled + 3] = attempts and due .. ' ' .. attempts or due, id, envelope
  filled = filled + 3
  joins = joins and not (string.find(envelope, '\30', 1, true) or string.find(id, '\30', 1, true)) and joins + #envelope
end

-- Redis keeps a zset of up to 128 short members as one list and reads all scores of it for each new member: 2 us for each of
-- a claim of 50, against 0.3 us in a skiplist, which it makes of it for a member this long. No id has braces.
local MAKES_SKIPLIST = '{' .. string.rep('-', 64) .. '}'
local WORTH_A_SKIPLIST = 16

local lastClaim = whole(claimBefore) or 0
-- After a failover the clock of the master may be behind, and claim numbers of the old master may not have arrived
-- here.
if ASKED > now + 50 and lastClaim < ASKED * 1024 then
  lastClaim = ASKED * 1024
  put('claim', claim_name(lastClaim))
end
-- `scores`: due times as text; without, they are read from the envelopes.
local function take(index, ids, scores)
  local envelopes = call('HMGET', JOBS, unpack(ids))
  local texts = records > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}
  claim = next_claim(lastClaim)
  --#limits limits.claim = claim
  local number, bytes, started, running, others = claim_name(claim), 0, {}, {}, {}
  local losses, damaged = 0, false
  for i = 1, #ids do
    local id, envelope, text = ids[i], envelopes[i], texts[i]
    if not envelope then
      if onlyClaims then call('ZCARD', LEASES) end
      bury(id, 'undecodable', '{"name":"StoredDataError","message":"The index names a job that has no record."}')
      damaged = true
      others[#others + 1] = id --#limits others[#others + 1] = id; free(id)
    elseif text and index == DUE and select(2, read_record(text)) > 0 then
      -- It lost leases before and was moved to `due` by hand: even so it must not run among other jobs.
      call('ZADD', QUARANTINE, now, id)
      others[#others + 1] = id
      nQuarantined = nQuarantined + 1
    else
      local n = #started
      bytes = bytes + #envelope
      if bytes > byteLimit and n > 0 then
        byteLimit = 0 -- Said in the reply.
        break
      end
      started[n + 1] = id
      --#limits limits.expired[id] = has_expired(envelope, now)
      if index == QUARANTINE then losses = select(2, read_record(text)) end
      running[2 * n + 1] = number
      running[2 * n + 2] = id
      -- Only a job with a record can have been put off.
      if text and scores and tonumber(scores[i]) ~= due_of(envelope) then postponed[#postponed + 1] = scores[i] .. ' ' .. id end
      tell_of(id, scores and scores[i], text, envelope)
    end
  end
  if #started > 0 then
    local sole = #started == 1 and (flag('a') or losses >= FREE_LOSSES)
    call('ZADD', LEASES, sole and sole_deadline(now + lease) or now + lease, number)
    if #started >= WORTH_A_SKIPLIST then
      call('ZADD', RUNNING, number, MAKES_SKIPLIST, unpack(running))
      call('ZREM', RUNNING, MAKES_SKIPLIST)
    else
      call('ZADD', RUNNING, unpack(running))
    end
    put('claim', number)
    if whole(meta[20]) ~= lease then put('lease', lease) end -- The field of that name: reshard() sweeps by it.
    if bursts > 0 then call('HDEL', DEBOUNCE, unpack(started)) end
    call('ZREM', index, unpack(started))
  else
    claim = 0
  end
  if #others > 0 then call('ZREM', index, unpack(others)) end
  if damaged then byteLimit = 0 end -- There may be whole ones behind it.
  --#limits return started, #started + #others
end

if not answer and not paused then
  if nQuarantined > 0 and (flag('v') or quarantineLimit > 0) then
    --#limits local may = startable(math.max(1, quarantineLimit), waited)
    -- The role is for a process that has to stop its queues. One that runs nothing may take from the quarantine without it.
    if not waited and (not isolator or isolator == me) then --#limits if #may > 0 and not waited and (not isolator or isolator == me) then
      if not isolator or isolatorTill < now + ROLE_MS / 2 then
        put('isolator', me .. ' ' .. string.format('%.0f', now + ROLE_MS))
      end
      isolator = me
    end
    if quarantineLimit > 0 then
      local ids = waited and call('ZRANGE', QUARANTINE, '-inf', now - waited, 'BYSCORE', 'LIMIT', 0, quarantineLimit) --#limits local ids = may
        or call('ZRANGE', QUARANTINE, 0, quarantineLimit - 1) --#limits or {}
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
      if #few > 0 then take(QUARANTINE, few); moves = true end --#limits start_isolated(few, take)
      nQuarantined = call('ZCARD', QUARANTINE)
    end
  elseif isolator == me and nQuarantined == 0 then
    put('isolator', '')
    isolator = nil
  end
  if claims and quarantineLimit == 0 then
--#if limits
    claim_by_turns(claimLimit, take)
--#else
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
--#end
  end
end
if not answer and (settles or claim > 0 or IN_DOUBT) then
  local names = table.concat(lost, '\n')
  if #superseded > 0 then names = names .. '\n\t' .. table.concat(superseded, '\n\t') end
  if #postponed > 0 then names = names .. '\n\v' .. table.concat(postponed, '\n\v') end
  -- Forgotten earlier, an answer that was lost would leave its jobs with a process that does not know of them, until the lease ends.
  remember(seq, string.format('%.0f ', claim) .. names, claim > 0 and math.max(SESSION_PX, lease) or nil)
end
