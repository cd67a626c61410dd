-- One that waits for the one before it has a record, too, by which its due time is known (step/settle.lua): it has not begun.
local function has_begun(id)
  local charged, losses, snoozes = read_record(call('HGET', ATTEMPTS, id))
  return charged + losses + snoozes > 0
end

-- Takes back occurrences of a schedule that have not begun; those that were given an attempt go on.
-- @param ids a list   @param stay ids of which new ones are made in this call, or nil. The caller reads the types of the keys before
-- @returns how many it took back, and a set of them
local function withdraw(ids, stay)
  local found, erased, count = {}, {}, 0
  for _, id in ipairs(ids) do
    if not found[id] and call('ZSCORE', DUE, id) and not has_begun(id) then
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
