-- `attempts` holds, only for ids that had any: "failures+losses  losses in a row  snoozes  last claim lost", and of a dead
-- letter that was given one more run the number of attempts after which it is over, whatever the job or its handler
-- says. The claim lets a late success count as long as no worker has started the job again.
local function read_record(text)
  local charged, losses, snoozes, claim, limit = string.match(text or '', '^(%d+) (%d+) (%d+) (%d+) ?(%d*)$')
  return tonumber(charged) or 0, tonumber(losses) or 0, tonumber(snoozes) or 0, tonumber(claim) or 0, tonumber(limit)
end

local function record(charged, losses, snoozes, claim, limit)
  local text = string.format('%.0f %.0f %.0f %.0f', charged, losses, snoozes, claim)
  return limit and text .. string.format(' %.0f', limit) or text
end

-- A worker that lost the lease of this job may not end it any more: the job was given another due time or payload.
local function disown(id)
  local text = call('HGET', ATTEMPTS, id)
  if not text then return end
  local charged, losses, snoozes, _, limit = read_record(text)
  call('HSET', ATTEMPTS, id, record(charged, losses, snoozes, 0, limit))
end
