-- How a run ends: the functions that settling and claiming share.
-- Needs what was read. Gives delayed_by, drop, keep, which counts in `kept`, and owns.

-- A delay that is no number must not fail the step: the worker would send the step again for ever, and no job of the queue would run.
local NO_DELAY_MS = 60000
local function delayed_by(text)
  return now + (whole(text) or NO_DELAY_MS)
end

local function drop(id)
--#if limits
  depart(id)
  free(id)
--#end
  call('ZREM', RUNNING, id)
  call('ZREM', DUE, id)
  call('ZREM', QUARANTINE, id)
  erase(id)
end

-- Keeps records of completed jobs for `get()` and `list()`. Called before they leave the other keys. A job that a
-- followup replaces or a cancellation ends is not kept: its id is another job's, or was not wanted.
local function keep(ids)
  local envelopes = call('HMGET', JOBS, unpack(ids))
  local texts = records > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}
  local scores, entries = {}, {}
  for i, id in ipairs(ids) do
    if envelopes[i] then
      scores[#scores + 1] = now
      scores[#scores + 1] = id
      entries[#entries + 1] = id
      entries[#entries + 1] = (texts[i] or '') .. '\n' .. envelopes[i]
    end
  end
  if #scores == 0 then return end
  call('HSET', HISTORY, unpack(entries))
  call('ZADD', COMPLETED, unpack(scores))
  kept = kept + #scores / 2
end

-- Does this claim still own the id? A late ending also counts as long as no worker has started the job again.
local function owns(id, claim, score)
  if score and tonumber(score) == claim then return true end
  if score or records == 0 then return false end
  local _, _, _, last = read_record(call('HGET', ATTEMPTS, id))
  if last ~= claim then return false end
  return call('ZSCORE', DUE, id) or call('ZSCORE', QUARANTINE, id)
end
