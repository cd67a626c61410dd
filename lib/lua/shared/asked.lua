-- Calls that set something and may be repeated have no session. So that a copy which arrives late, of whatever process, does not undo
-- what was set since, each first asks for its place in the order of calls, and what is set knows the place of the call that set it.
-- A place is a time of this clock, in microseconds, but always behind the place before: by a clock that has slipped back, a resume would
-- stand before the pause that it ends, and change nothing.
local function micros()
  return string.format('%.0f', TIME[1] * 1000000 + TIME[2])
end

-- @param last the place that was given last   @param set the place of what is set, which a process of an older version may have given
local function next_place(last, set)
  local place = math.max(TIME[1] * 1000000 + TIME[2], (whole(last) or 0) + 1, (whole(set) or 0) + 1)
  local text = string.format('%.0f', place)
  call('HSET', META, 'lastPlace', text)
  return text
end

local function is_overtaken(place, set)
  place, set = whole(place), whole(set)
  return place ~= nil and set ~= nil and place < set
end
