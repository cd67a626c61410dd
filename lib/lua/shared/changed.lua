-- A worker whose shard is quiet rests: it sends no steps and reads this key, together with those of other queues
-- (lib/redis/rest-watch.ts). So what may give it something to do changes the key, whether or not a wake-up was sent. The value is a
-- moment and no count, which could come again after a failover. Where nobody has rested yet there is none, and of a wrong type it
-- stays as it is, and nobody rests.
local function mark_changed()
  local moment = TIME[1] * 1000000 + TIME[2]
  local last = redis.pcall('SET', CHANGED, string.format('%.0f', moment), 'XX', 'GET')
  last = type(last) == 'string' and tonumber(last)
  -- The clock stood still, as that of a test may.
  if last and last >= moment and last < moment + 1000000 then redis.pcall('SET', CHANGED, string.format('%.0f', last + 1)) end
end

-- @returns what it holds, for somebody who is to rest; nil when it cannot be read. From now on its absence is a change: what was stored
-- is gone
local function changed_at()
  local held = redis.pcall('GET', CHANGED)
  if not held then
    held = string.format('%.0f', TIME[1] * 1000000 + TIME[2])
    redis.pcall('SET', CHANGED, held)
  end
  return type(held) == 'string' and held or nil
end
