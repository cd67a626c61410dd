-- Where a job is that a call wants to change while it waits.
-- @returns w waiting, r running, x dead, n notFound; and of a waiting one when it is due: nil in quarantine, which it leaves as soon
-- as it can
local function place_of(id)
  local due, quarantined = tonumber(call('ZSCORE', DUE, id)), call('ZSCORE', QUARANTINE, id)
  if call('ZSCORE', RUNNING, id) then return 'r' end
  if due or quarantined then return 'w', due end
  return call('ZSCORE', DEAD, id) and 'x' or 'n'
end

-- What is answered of a job that does not wait.
local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }
