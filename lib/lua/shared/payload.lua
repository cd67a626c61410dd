-- Gives a stored job another payload. Its header, the options of its enqueue, stays, but only TypeScript can read it. So a caller
-- says which header it took over: '' for none, or what this showed it before.

-- What is longer is damaged: a context has 4 KiB at most.
local LONGEST_HEAD = 65536

-- Version and header, without the times, which a reschedule may have changed meanwhile.
local function header_of(head)
  return string.sub(head, 1, 1) .. string.sub(head, rest_of(head))
end

-- @returns the new text; or, when the header is another one, nil and the stored text up to the payload
local function with_payload(envelope, known, content)
  local head = string.sub(envelope, 1, math.min((string.find(envelope, '\n', 1, true) or LONGEST_HEAD + 1) - 1, LONGEST_HEAD))
  if header_of(head) ~= (known == '' and '1' or header_of(known)) then return nil, head end
  local version, tail = version_of(content)
  return version .. string.sub(envelope, 2, rest_of(envelope) - 1) .. tail
end
