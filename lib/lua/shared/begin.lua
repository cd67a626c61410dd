-- How each call of a session begins: it is refused where these keys are not what the caller takes them for. A call that already ran
-- gets the answer that it got then. One that comes too late is refused.
-- @returns what to reply at once, or nil; then the named fields of `meta`, false for one that is not there
local function begin(seq, settling, ...)
  local meta = call('HMGET', META, 'layout', 'needs', ...)
  local refused = refusal(meta[1], meta[2], settling)
  if refused then return refused end
  local answer, stale = remembered(seq)
  if answer ~= nil then return answer or stale end
  return nil, unpack(meta, 3)
end
