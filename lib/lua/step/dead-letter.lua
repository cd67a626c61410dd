-- Makes a dead letter of a job, and keeps its errors.
-- Needs what was read. Gives note and bury, which counts in `buried`.

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

local function bury(id, reason, error)
  call('ZADD', DEAD, now, id)
  note(id, reason, error)
  buried = buried + 1
end
