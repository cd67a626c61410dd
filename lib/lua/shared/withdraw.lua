-- What a process that had to stop has interrupted is due again a ms later each time (dueAgain of lib/recurring/occurrence-gate.ts): so it has a
-- record as well, of which no attempt is used.
local INTERRUPTED_MS = 20

-- One that waits for the one before it has a record, too, by which its due time is known (step/settle.lua): it has not begun. It is put off by
-- more.
-- @param due its score in DUE
local function has_begun(id, due)
  local text = call('HGET', ATTEMPTS, id)
  if not text then return false end
  local charged, losses, snoozes = read_record(text)
  local by = due - (due_of(call('HGET', JOBS, id) or '') or due)
  return charged + losses + snoozes > 0 or (by > 0 and by <= INTERRUPTED_MS)
end

-- The same, of one that waited for the one before it, then began, and was interrupted: then it is the one that began last. It has a record;
-- a backfill may have made it anew since, and that one has none.
local function is_unbegun(id)
  local due = tonumber(call('ZSCORE', DUE, id) or nil)
  if not due or has_begun(id, due) then return false end
  return call('HEXISTS', ATTEMPTS, id) == 0 or call('HGET', SCHEDULES, 'floor' .. (made_by(id) or '')) ~= id
end

-- Takes back occurrences of a schedule that have not begun; the others go on.
-- @param ids a list   @param stay ids of which new ones are made in this call, or nil. The caller reads the types of the keys before
-- @returns how many it took back, and a set of them
local function withdraw(ids, stay)
  local found, erased, count = {}, {}, 0
  for _, id in ipairs(ids) do
    if not found[id] and is_unbegun(id) then
      found[id] = true
      count = count + 1
      if not (stay and stay[id]) then erased[#erased + 1] = id end
    end
  end
--#if limits
  local waited = {}
  for id in pairs(found) do waited[#waited + 1] = id end
  table.sort(waited)
  if #waited > 0 then free(unpack(waited)) end
--#end
  if #erased > 0 then
    call('ZREM', DUE, unpack(erased)) --#limits depart(unpack(erased)); call('ZREM', DUE, unpack(erased))
    erase_unfinished(unpack(erased))
  end
  return count, found
end
