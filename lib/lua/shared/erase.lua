-- Removes the records of jobs. The caller removes them from the index, and reads the types before.
local function forget_attempts(...)
  call('HDEL', ATTEMPTS, ...)
  call('HDEL', ERRORS, ...)
end

-- The record goes last: a record without an index is indexed again by the next enqueue, an index without a record would be a ghost.
local function erase(...)
  forget_attempts(...)
  call('HDEL', JOBS, ...)
end

-- Jobs that will not run take their debounce burst and their uniqueness window with them.
local function erase_unfinished(...)
  call('HDEL', DEBOUNCE, ...)
  call('ZREM', UNIQUE, ...)
  erase(...)
end
