-- What the rates of a queue and of its groups leave, and what starts now is written into; forgets windows that are over.
-- Needs what was read. Gives room_of(), book() and book_starts().

-- How many jobs may start by the limits of the queue, or only by its rate. Gives `limits.window`.
local function room_of(want, onlyRate)
  read_limits()
  local room = want
  if limits.count and not onlyRate then room = math.min(room, limits.count - call('ZCARD', RUNNING)) end
  if limits.max then
    limits.window = window(call('HGET', RATES, ''), limits.max, limits.per)
    if limits.window.ahead then call('HSET', RATES, '', text_of_starts(limits.window.kept)) end
    room = math.min(room, limits.window.left)
  end
  return math.max(0, room)
end

-- Starts of now are written into a window. Beyond 128 entries those of one 64th of it become one, at the latest time among them: so
-- never more pass than may, and at most a 64th less.
-- @returns the window as it is stored, and when its last start leaves it
local function book(rate, n)
  local kept = rate.kept
  local last = kept[#kept]
  if last and last[1] == now then last[2] = last[2] + n else kept[#kept + 1] = { now, n, limits.claim } end
  if #kept > 128 then
    local fewer, width = {}, rate.per / 64
    for _, entry in ipairs(kept) do
      local before = fewer[#fewer]
      if before and math.floor(before[1] / width) == math.floor(entry[1] / width) then
        before[1], before[2] = entry[1], before[2] + entry[2]
      else
        fewer[#fewer + 1] = entry
      end
    end
    kept = fewer
  end
  return text_of_starts(kept), now + rate.per
end

-- Starts count for the rate of the queue.
local function book_starts(n)
  if limits.window and n > 0 then call('HSET', RATES, '', (book(limits.window, n))) end
end

-- Forgets groups of which nothing waits and whose windows are over. Only in a sweep: a look at each of them when its window ends would keep
-- an idle fleet awake.
if sweeps and not answer then
  local groups = call('ZRANGE', RING, exact(OVER), exact(OVER + now), 'BYSCORE', 'LIMIT', 0, MOST)
  local ended = {}
  for i, starts in ipairs(#groups > 0 and call('HMGET', RATES, unpack(groups)) or {}) do
    local rate = window(starts, 0, limits.groupPer or 0)
    -- A longer window holds since, or the clock was set back.
    if #rate.kept > 0 then
      call('ZADD', RING, exact(OVER + rate.kept[#rate.kept][1] + rate.per), groups[i])
      if rate.ahead then call('HSET', RATES, groups[i], text_of_starts(rate.kept)) end
    else
      ended[#ended + 1] = groups[i]
    end
  end
  if #ended > 0 then
    call('ZREM', RING, unpack(ended))
    call('HDEL', RATES, unpack(ended))
  end
end
