-- Calls that set something and may be repeated have no session. So that a copy which arrives late, of whatever process, does not undo
-- what was set since, each says when it was asked for, by this clock, and what is set knows when it was.
local function micros()
  return string.format('%.0f', TIME[1] * 1000000 + TIME[2])
end

-- @param last when what is set was asked for; a time to come is from before a jump of the clock
local function is_overtaken(asked, last)
  asked, last = whole(asked), whole(last)
  return asked ~= nil and last ~= nil and asked < last and last <= tonumber(micros())
end
