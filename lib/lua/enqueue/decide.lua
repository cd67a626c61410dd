-- Decides what becomes of one job, and writes it.
-- Needs what stands under its id. Gives decide().

-- A call that finds the id taken keeps what is there, replaces it, reschedules it, or is rejected.
local function outcome_of(mode, state, ghost, ending, limit)
  local full = limit and size >= limit
  if not state then return full and not ghost and 'f' or 'c' end
  if mode == 'x' then return 'x' end
  if state == 'c' then return 'k' end
  if ending then return 'p' end
  if mode == 'p' or mode == 'u' then return 'p' end
  if mode == 'r' then return 'r' end
  -- A dead letter leaves its id to the next job: a call that would have kept a job makes a new one in its place.
  if state ~= 'x' or mode ~= 'k' then return 'k' end
  return full and 'f' or 'p'
end

local function overwrite(id, dueAt, envelope, outcome, state)
  call('ZADD', DUE, dueAt, id) --#limits set_due(dueAt, id, envelope); free(id)
  call('HSET', JOBS, id, envelope)
  if outcome == 'p' or state == 'x' then
    forget_attempts(id)
  else
    disown(id)
  end
  call('ZREM', QUARANTINE, id)
  call('ZREM', DEAD, id)
  if state == 'x' then size = size + 1 end
  known[id] = dueAt
end

-- No second job under this id until then.
local function open(id, uniqueFor)
  call('ZADD', UNIQUE, now + uniqueFor, id)
  windows = windows + 1
end

local function create(id, dueAt, envelope, ghost)
  if not ghost then size = size + 1 end
  if ghost then after = false elseif after then after = math.min(after, dueAt) end
  put(id, dueAt, envelope)
  if checked then known[id] = dueAt end
  if checked and history > 0 then anew[#anew + 1] = id end
  if ghost then
    call('ZREM', QUARANTINE, id)
    forget_attempts(id)
  end
end

-- @returns the reply about this job
local function decide(n, spec, id, content)
  local mode = string.sub(spec, 1, 1)
  local dueAt, expiry, maxWait, uniqueFor, limit = options_of(spec)
  local state, ghost, after_run, burst
  if checked then
    state, ghost, after_run = look_up(n, id)
    if maxWait then
      -- A burst began with the call that made the job which waits or runs. With none it begins now.
      burst = state and state ~= 'c' and (bursts[id] or tonumber(burstStarts[n])) or now
      -- Only a job that waits can be put off, and what bounds that brings none forward: a first call is due when it asks.
      local waits = state and state ~= 'c' and kept_due(n, id, after_run)
      if waits then dueAt = math.min(dueAt, math.max(waits, burst + maxWait)) end
    end
  end
  -- A run that was cancelled, with nothing to follow it, leaves its id to the next job.
  local ending = after_run == '!' and mode ~= 'm'
  local outcome = outcome_of(mode, state, ghost, ending, limit)

  if outcome == 'c' then
    --#limits if ghost then depart(id) end; if mode == 'm' then content = at_place(content, placeOfJob) end
    create(id, dueAt, mode == 'm' and content or sealed(content, stamp_of(dueAt, expiry_of(expiry, dueAt))), ghost)
  elseif outcome == 'p' or outcome == 'r' then
    after = false
    flush()
    if mode == 'u' then dueAt = kept_due(n, id, after_run) or dueAt end
    local envelope = outcome == 'r' and newest(id, after_run)
    envelope = envelope and moved(envelope, dueAt) or sealed(content, stamp_of(dueAt, expiry_of(expiry, dueAt)))
    if state == 'r' then
      -- Only `followups` may be written while a run lasts: it decides when the run ends, so there are never two leases at once.
      call('HSET', FOLLOWUPS, id, is_cancelled(after_run) and '!' .. envelope or envelope)
    else
      overwrite(id, dueAt, envelope, outcome, state)
    end
  elseif outcome == 'f' then
    dueAt = size
  elseif state ~= 'c' then
    dueAt = known[id] or tonumber(due[n]) or due_of(call('HGET', JOBS, id) or '') or 0
  end

  if outcome == 'c' or outcome == 'p' or outcome == 'r' then
    -- Another life, another window: the one of a job that died or was cancelled says nothing of this one.
    if uniqueFor and (outcome == 'c' or state == 'x' or ending) then open(id, uniqueFor) end
    if burst then
      bursts[id] = burst
      call('HSET', DEBOUNCE, id, burst)
    end
  end
  return outcome .. ' ' .. (state or '-') .. ' ' .. string.format('%.0f', dueAt)
end
