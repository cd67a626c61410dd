-- Answers a call that already ran: the names that it gave then, and its batch, read again but for due times that nothing else holds.
-- Needs `answer` and tell_of(). Gives `claim`, `batch`, `lost` and `superseded`.

if answer then
  -- A resend: read the batch again by its claim number, so that it never holds a job that has gone since.
  local number, names = string.match(answer, '^(%d+) ?(.*)$')
  claim = tonumber(number)
  local dues = {}
  for mark, name in string.gmatch(names, '([\t\v]?)([^\n]+)') do
    if mark == '\v' then
      local due, id = string.match(name, '^(%S+) (.*)$')
      if due then dues[id] = due end
    elseif mark == '\t' then
      superseded[#superseded + 1] = name
    else
      lost[#lost + 1] = name
    end
  end
  local ids = claim > 0 and call('ZRANGE', RUNNING, number, number, 'BYSCORE', 'LIMIT', 0, 200) or {}
  if #ids > 0 then
    local envelopes, texts = call('HMGET', JOBS, unpack(ids)), call('HMGET', ATTEMPTS, unpack(ids))
    for i, id in ipairs(ids) do
      if envelopes[i] then
        tell_of(id, dues[id], texts[i], envelopes[i])
      end
    end
  end
end
