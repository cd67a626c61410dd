-- As Redis compares members. `<` would follow the locale of the server.
local function is_before(one, other)
  for i = 1, math.min(#one, #other) do
    local a, b = string.byte(one, i), string.byte(other, i)
    if a ~= b then return a < b end
  end
  return #one < #other
end

-- How many entries are not behind this one. When it has gone its place is searched for among those of its score, which may be a
-- million: never by an offset, which Redis walks and which counts those that were before it and have gone.
local function place_behind(index, score, id)
  local at = call('ZSCORE', index, id)
  if at and tonumber(at) == tonumber(score) then return call('ZRANK', index, id) + 1 end
  local low, high = call('ZCOUNT', index, '-inf', '(' .. score), call('ZCOUNT', index, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = call('ZRANGE', index, middle, middle)[1]
    if is_before(member, id) then low = middle + 1 else high = middle end
  end
  return low
end
