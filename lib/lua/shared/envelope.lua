-- An envelope is `1`, a flag, three or two times in hex, then what TypeScript wrote (lib/job/envelope.ts):
--   1- <enqueued 11> <due 11>            <header JSON or nothing> \n <payload>
--   1x <enqueued 11> <due 11> <expiry 11> <header JSON or nothing> \n <payload>
-- (without the blanks). What begins with `2` is version 2 instead of 1: its header tells how the payload was encoded. The times are written here because only the server's clock counts; the payload is never decoded.
local function version_of(rest)
  if string.byte(rest) == 50 then return '2', string.sub(rest, 2) end
  return '1', rest
end

local function seal(due, expiry, rest)
  local version, tail = version_of(rest)
  if expiry then return version .. string.format('x%011x%011x%011x', now, due, expiry) .. tail end
  return version .. string.format('-%011x%011x', now, due) .. tail
end

local function due_of(envelope)
  return tonumber(string.sub(envelope, 14, 24), 16)
end

-- The same envelope, due at another time; its expiry moves by the same distance.
local function moved(envelope, due)
  local was = due_of(envelope)
  if not was then return envelope end
  local head = string.sub(envelope, 1, 13) .. string.format('%011x', due)
  if string.sub(envelope, 2, 2) ~= 'x' then return head .. string.sub(envelope, 25) end
  local expiry = tonumber(string.sub(envelope, 25, 35), 16) or due
  return head .. string.format('%011x', math.max(0, expiry + due - was)) .. string.sub(envelope, 36)
end
