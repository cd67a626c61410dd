-- The arguments: the specs, how many jobs each has, and where the arguments of those jobs begin.
-- Needs ARGV. Gives `specs`, `counts` and `starts`; `checked`, when ids have to be looked up; `limited`, when a queue
-- may be full.

local specs, counts, starts, checked, limited = {}, {}, {}, false, false
--#if limits
-- How many arguments each job of a run has: three where they name places.
local widths, placeOfJob = {}, ''
local function stamp_of(due, expiry)
  return stamp_at(due, expiry, placeOfJob)
end
--#end
do
  local at, n = 2, 0
  while at <= #ARGV do
    local spec, count = ARGV[at], 1
    local star = string.find(spec, '*', 1, true)
    if star then count, spec = tonumber(string.sub(spec, 1, star - 1)), string.sub(spec, star + 1) end
--#if limits
    local isPlaced = string.sub(spec, -2) == ' @'
    if isPlaced then spec, adopts = string.sub(spec, 1, -3), SHARD == '' end
    widths[n + 1] = isPlaced and 3 or 2
--#end
    n = n + 1
    specs[n], counts[n], starts[n] = spec, count, at
    local rules = string.find(spec, ' ', 1, true)
    if rules and string.find(spec, ' %S+ %S+ %S+ %d+$', rules) then limited = true end
    if string.byte(spec) ~= 110 or rules and not string.find(spec, '^ %S+ %- %- ?%d*$', rules) then checked = true end
    at = at + 1 + 2 * count --#limits at = at + 1 + widths[n] * count
  end
end

local function options_of(spec)
  local at = string.find(spec, ' ', 1, true)
  local value, expiry, maxWait, uniqueFor, limit = string.sub(spec, 3)
  if at then value, expiry, maxWait, uniqueFor, limit = string.match(spec, '^..(%d+) (%S+) (%S+) (%S+) ?(%d*)$') end
  local dueAt = tonumber(value)
  if string.byte(spec, 2) == 100 then dueAt = now + dueAt end
  return dueAt, expiry, tonumber(maxWait), tonumber(uniqueFor), tonumber(limit)
end

local function expiry_of(expiry, dueAt)
  if not expiry or expiry == '-' then return nil end
  local ms = tonumber(string.sub(expiry, 2))
  if string.sub(expiry, 1, 1) == 'i' then return dueAt + ms end
  return ms
end
