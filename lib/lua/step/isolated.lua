-- Jobs in quarantine start by the rates like others, and count for them.
-- Needs the rates. Assigns startable() and start_isolated(), which step.lua declares. Gives reserved_for().

local reserved_for -- A script has at most 200 local variables at a time.
do

-- More are not looked at: behind so many jobs of groups whose windows are full others wait until these open.
local LOOKED_AT = 50
-- Every process asks for jobs that have waited so long (LAST_MS of lib/worker/isolation/quarantine-turn.ts).
local LAST_MS = 55000

-- The group of a job in quarantine: a run that was claimed by turns has left its place. Of other ones the envelope tells, of which few are read.
local function group_of(place, id)
  return base_of(tonumber(place or nil) or place_in(call('HGET', JOBS, id) or ''))
end

local known = {}
local function window_of(base)
  if not known[base] then
    known[base] = window(call('HGET', RATES, base), limits.groupMax, limits.groupPer)
    if known[base].ahead then call('HSET', RATES, base, text_of_starts(known[base].kept)) end
  end
  return known[base]
end

-- Jobs in quarantine for which the rates have room now, at most so many, in the order in which they came there. A limit of jobs that run is
-- no reason to leave one out: a process that stops its queues for it makes room.
local function with_room(most, waited)
  most = room_of(most, true)
  if most == 0 then return {} end
  local many = limits.groupMax and math.max(most, LOOKED_AT) or most
  local ids = waited and call('ZRANGE', QUARANTINE, '-inf', now - waited, 'BYSCORE', 'LIMIT', 0, many)
    or call('ZRANGE', QUARANTINE, 0, many - 1)
  if not limits.groupMax or #ids == 0 then return ids end
  local found, places, given = {}, call('ZMSCORE', HELD, unpack(ids)), {}
  for i, id in ipairs(ids) do
    if #found == most then break end
    local base = group_of(places[i], id)
    given[base] = given[base] or 0
    if base == '9' or given[base] < window_of(base).left then
      found[#found + 1] = id
      given[base] = given[base] + 1
    end
  end
  return found
end

-- The same. While there are none nobody may stop its queues for them.
function startable(most, waited)
  local ids = with_room(most, waited)
  if #ids == 0 and isolator == me then
    put('isolator', '')
    isolator = nil
  end
  return ids
end

-- Claims these jobs, as far as all limits have room, and counts them. Those that have expired never run.
function start_isolated(few, take)
  local room = room_of(#few)
  if room == 0 then return end
  local ids = take(QUARANTINE, { unpack(few, 1, room) })
  local n, bases, starts = 0, {}, {}
  local places = limits.groupMax and #ids > 0 and call('ZMSCORE', HELD, unpack(ids)) or {}
  for i, id in ipairs(ids) do
    if not limits.expired[id] then
      n = n + 1
      local base = limits.groupMax and group_of(places[i], id) or '9'
      if base ~= '9' and not starts[base] then bases[#bases + 1] = base end
      starts[base] = (starts[base] or 0) + 1
    end
  end
  book_starts(n)
  for _, base in ipairs(bases) do
    local text, ends = book(window_of(base), starts[base])
    call('HSET', RATES, base, text)
    -- Of which nothing waits: a sweep forgets its window when that is over.
    call('ZADD', RING, 'NX', exact(OVER + ends), base)
  end
end

local reserved
-- Due jobs leave one start, or one place, to a job that has waited for long in quarantine: they come at the very moment when there is
-- room, and while there are always more of them it would never run. Gives
-- `limits.reservedTill`: when whoever must wait for that looks again.
-- @param base of a group; '' for the queue
-- @returns 1 or 0
function reserved_for(base)
  if not reserved then
    reserved = {}
    local ids = nQuarantined > 0 and call('ZRANGE', QUARANTINE, '-inf', now - LAST_MS, 'BYSCORE', 'LIMIT', 0, LOOKED_AT) or {}
    for _, place in ipairs(#ids > 0 and call('ZMSCORE', HELD, unpack(ids)) or {}) do
      local base = place and base_of(tonumber(place)) or '9'
      reserved[base], limits.reservedTill = 1, now + 1000
      -- While the window of its group is full it needs nothing of the queue.
      if base == '9' or not limits.groupMax or window_of(base).left > 0 then reserved[''] = 1 end
    end
  end
  return reserved[base] or 0
end

end
