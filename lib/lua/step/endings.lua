-- How a run ends: the functions that settling and claiming share.
-- Needs what was read. Gives note, delayed_by, bury, drop, keep, owns; they count in `buried` and `kept`.

-- What is kept of the errors of a job: a line that says why, one with the last error, and one in short for each of the last
-- attempts that failed, the newest first. `error` brings its own short line when it is an attempt's.
local ERRORS_KEPT, ERRORS_MOST_BYTES = 5, 65536
local function note(id, why, error)
  local text, old = why .. '\n' .. error, errors > 0 and call('HGET', ERRORS, id)
  local first = old and #old <= ERRORS_MOST_BYTES and string.find(old, '\n', 1, true)
  local from = first and string.find(old, '\n', first + 1, true)
  if from then
    local to = from
    for _ = 1, string.find(error, '\n', 1, true) and ERRORS_KEPT - 1 or ERRORS_KEPT do
      to = to and string.find(old, '\n', to + 1, true)
    end
    text = text .. string.sub(old, from, to and to - 1 or -1)
  end
  call('HSET', ERRORS, id, text)
end

-- A delay that is none must not fail the step: that would be sent again for ever, and nothing else of its queue would run.
local NO_DELAY_MS = 60000
local function delayed_by(text)
  return now + (whole(text) or NO_DELAY_MS)
end

local function bury(id, reason, error)
  call('ZADD', DEAD, now, id)
  note(id, reason, error)
  buried = buried + 1
end

local function drop(id)
  call('ZREM', RUNNING, id)
  call('ZREM', DUE, id)
  call('ZREM', QUARANTINE, id)
  erase(id)
end

-- Keeps records of completed jobs for `get()` and `list()`. Called before they leave the other keys. A job that a
-- follow-up replaces or a cancellation ends is not kept: its id is another job's, or was not wanted.
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
