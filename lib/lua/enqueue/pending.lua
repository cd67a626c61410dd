-- Collects what is created, so that many jobs are written by one command.
-- Needs `head`. Gives put() and flush(); `out`, the reply word by word; what the end of this call has to know: `created`, `windows`, `anew`, and
-- `after`, the head of `due` as these writes leave it. `after` is false when it has to be read again.

local out = { now }
local zadd, hset, pending, anew, created, windows = {}, {}, 0, {}, 0, 0
local after = head or math.huge
--#limits local putAt = {}
local function put(id, dueAt, envelope)
  --#limits putAt[pending / 2 + 1] = placeOfJob == '' and '9' or string.sub(placeOfJob, 10)
  zadd[pending + 1], zadd[pending + 2] = dueAt, id
  hset[pending + 1], hset[pending + 2] = id, envelope
  pending = pending + 2
  created = created + 1
end

-- The record first: this is what tells a plain call that `jobs` is of a wrong type, and `due` was read.
local function flush()
  if pending == 0 then return end
  call('HSET', JOBS, unpack(hset))
--#if limits
  enter(zadd, putAt)
  putAt = {}
  call('ZADD', DUE, unpack(zadd))
--#else
  call('ZADD', DUE, unpack(zadd))
--#end
  zadd, hset, pending = {}, {}, 0
end
