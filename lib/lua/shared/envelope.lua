-- An envelope is `1`, a flag, two or three times, then what TypeScript wrote (lib/job/envelope.ts):
--   1- <enqueued> <due>           <header JSON or nothing> \n <payload>
--   1x <enqueued> <due> <expiry>  <header JSON or nothing> \n <payload>
-- In a queue with groups the flags are `g` and `y` where a job has a group or a priority: its place (groups.lua), nine digits, stands behind the times.
-- (without the blanks). What begins with `2` is version 2 instead of 1: its header tells how the payload was encoded. The times are written here because only the server's clock counts; the payload is never decoded.
--
-- A time is seven digits of base 79, `,` to `z`, good until the year 2577. Eleven of base 16 would cost every job the next
-- larger piece of memory.
local function digits(ms)
  ms = math.min(math.max(0, math.floor(ms)), 79 ^ 7 - 1)
  local g = ms % 79
  ms = (ms - g) / 79
  local f = ms % 79
  ms = (ms - f) / 79
  local e = ms % 79
  ms = (ms - e) / 79
  local d = ms % 79
  ms = (ms - d) / 79
  local c = ms % 79
  ms = (ms - c) / 79
  local b = ms % 79
  return string.char((ms - b) / 79 + 44, b + 44, c + 44, d + 44, e + 44, f + 44, g + 44)
end

local function time_at(text, at)
  local a, b, c, d, e, f, g = string.byte(text, at, at + 6)
  if not g or math.min(a, b, c, d, e, f, g) < 44 or math.max(a, b, c, d, e, f, g) > 122 then return nil end
  return ((((((a - 44) * 79 + b - 44) * 79 + c - 44) * 79 + d - 44) * 79 + e - 44) * 79 + f - 44) * 79 + g - 44
end

local function version_of(content)
  if string.byte(content) == 50 then return '2', string.sub(content, 2) end
  return '1', content
end

-- Where what TypeScript wrote begins.
local function rest_of(envelope)
--#if limits
  local flag = string.sub(envelope, 2, 2)
  return flag == 'x' and 24 or flag == 'g' and 26 or flag == 'y' and 33 or 17
--#else
  return string.sub(envelope, 2, 2) == 'x' and 24 or 17
--#end
end

-- Flag and times of an envelope that is written now.
local enqueued
local function stamp_of(due, expiry)
  enqueued = enqueued or digits(now)
  if expiry then return 'x' .. enqueued .. digits(due) .. digits(expiry) end
  return '-' .. enqueued .. digits(due)
end

--#if limits
-- The place of a job comes as the nine digits that its envelope has and, behind them, as a number; '' for that of a job with neither group
-- nor priority.
local function placed(stamp)
  return (string.byte(stamp) == 120 and 'y' or 'g') .. string.sub(stamp, 2)
end

local function stamp_at(due, expiry, place)
  local stamp = stamp_of(due, expiry)
  return place == '' and stamp or placed(stamp) .. string.sub(place, 1, 9)
end

-- An envelope without a place, of another queue, at this place.
local function at_place(envelope, place)
  local from = rest_of(envelope)
  if place == '' or from > 24 then return envelope end
  return string.sub(envelope, 1, 1) .. placed(string.sub(envelope, 2, from - 1)) .. string.sub(place, 1, 9) .. string.sub(envelope, from)
end

--#end
local function sealed(content, stamp)
  local version, tail = version_of(content)
  return version .. stamp .. tail
end

--#if limits
-- A job that has expired at the ms of its claim is claimed to be settled as that: a worker judges by the time of the same answer.
local function has_expired(envelope, at)
  local flag = string.byte(envelope, 2)
  return (flag == 120 or flag == 121) and at > (time_at(envelope, 17) or at) or nil
end

--#end
local function due_of(envelope)
  return time_at(envelope, 10)
end

-- The same envelope, due at another time; its expiry moves by the same distance.
local function moved(envelope, due)
  local was = due_of(envelope)
  if not was then return envelope end
  local head = string.sub(envelope, 1, 9) .. digits(due)
--#if limits
  local flag = string.sub(envelope, 2, 2)
  if flag ~= 'x' and flag ~= 'y' then return head .. string.sub(envelope, 17) end
--#else
  local from = rest_of(envelope)
  if from == 17 then return head .. string.sub(envelope, 17) end
--#end
  return head .. digits((time_at(envelope, 17) or due) + due - was) .. string.sub(envelope, 24)
end
