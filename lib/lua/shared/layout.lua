-- Refuses a shard written by a newer library, or one that needs a feature (rate limit, priority, ...) unknown here:
-- an old worker must not drain a queue whose rules it cannot keep.
local LAYOUT = 1
local function refusal(layout, needs)
  if layout and tonumber(layout) > LAYOUT then
    return redis.error_reply('DQLAYOUT layout ' .. layout .. ' is newer than ' .. LAYOUT .. ' at ' .. META)
  end
  if needs and needs ~= '' then
    return redis.error_reply('DQLAYOUT unknown features "' .. needs .. '" are needed at ' .. META)
  end
end
