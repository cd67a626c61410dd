-- Writes what this call owes to other keys, wakes, and replies.
-- Needs everything before it.

flush()

if #anew > 0 then
  -- One id is one job: the record of a completed one is removed. Not sooner: an old server that is full lets everything
  -- pass after a first removal.
  call('ZREM', COMPLETED, unpack(anew))
  call('HDEL', HISTORY, unpack(anew))
end
if windows > 0 then
  -- Twice as many as were added, so that ended windows go away also where no worker sweeps.
  local ended = call('ZRANGE', UNIQUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, 2 * windows)
  if #ended > 0 then call('ZREM', UNIQUE, unpack(ended)) end
end
local answer = (since and '' or '+') .. table.concat(out, ' ')
remember(seq, answer)
local fields = { 'enqueued', (whole(enqueuedBefore) or 0) + created }
if not since then
  fields[3], fields[4], fields[5], fields[6] = 'layout', LAYOUT, 'since', now
end
if not after then after = head_of_due() elseif after == math.huge then after = nil end --#limits after = moment()
if after and (not head or after < head) then mark_changed() end
local woken = paused ~= '1' and must_wake(head, after, tonumber(wokenAt))
if woken then
  fields[#fields + 1] = 'wokenAt'
  fields[#fields + 1] = now
end
call('HSET', META, unpack(fields))
if woken then wake(holder(leader)) end
return answer
