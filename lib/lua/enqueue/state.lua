-- What stands under an id. Ids that stand twice in one call are decided in order: `known` and `bursts` hold what it already did.
-- Needs what was read. Gives look_up(), newest() and kept_due().

local bursts = {}

-- @returns the state as the reply tells it, nil for none; whether only an index was there; what follows the present run
local function look_up(n, id)
  if known[id] then return known[id] <= now and 'd' or 'l' end
  local at = tonumber(due[n])
  local indexed = at or running[n] or dead[n] or quarantined[n]
  local ghost = false
  -- An index without a record is no job: this one takes its place. (A running or dead one is left to the call that settles it.)
  if indexed and not running[n] and not dead[n] and call('HEXISTS', JOBS, id) == 0 then
    indexed, ghost = nil, true
  end
  if indexed then
    local state = running[n] and 'r' or dead[n] and 'x' or (not at or at <= now) and 'd' or 'l'
    return state, ghost, state == 'r' and call('HGET', FOLLOWUPS, id)
  end
  if windowEnds[n] and tonumber(windowEnds[n]) > now then return 'c', ghost end
  return nil, ghost
end

-- The newest version of a job: a replacement that waits for the end of the run, else what runs or waits.
local function newest(id, after)
  return follower(after) or call('HGET', JOBS, id)
end

-- When the job that waits is due, or what waits for the end of a run; nil when nothing waits.
local function kept_due(n, id, after_run)
  if running[n] and not known[id] then
    local envelope = follower(after_run)
    return envelope and due_of(envelope)
  end
  if known[id] or due[n] then return known[id] or tonumber(due[n]) end
  return quarantined[n] and due_of(call('HGET', JOBS, id) or '')
end
