-- Wake-ups only shorten the polling, on which correctness rests. The leader and two idle processes are woken, never
-- all: PUBLISH costs Redis 31 us with one subscriber and 6.4 ms with a thousand. PUBLISH's answer is never used: on a
-- Cluster it counts one node.
local ROLE_MS = 6000
local LONGEST_SLEEP_MS = 600000

-- "name until" of the leader or isolator; a name whose time is over, or absurdly far (the clock was moved), counts as
-- no process.
local function holder(text)
  local name, till = string.match(text or '', '^(.+) (%d+)$')
  till = tonumber(till)
  if name and till > now and till <= now + ROLE_MS then return name, till end
end

-- A waiting worker is named by its process' channel and `#n`. A server that forbids us to publish must not fail the script
-- after its writes: the sleepers find out by themselves.
local function tell(name)
  redis.pcall('PUBLISH', string.match(name, '^(.*)#%d+$') or name, DUE)
end

-- The latest entries first: those processes are the most likely to live. Entries far in the future are from before a
-- jump of the clock. Of a wrong type it wakes nobody, instead of failing a script after its writes.
local function sleepers(most)
  local names = redis.pcall('ZRANGE', IDLE, now + LONGEST_SLEEP_MS, '(' .. now, 'BYSCORE', 'REV', 'LIMIT', 0, most)
  return names.err and {} or names
end

local function wake(leader, except)
  if leader and leader ~= except then tell(leader) end
  local others = 0
  -- Four, because the leader and `except` may be among them.
  for _, name in ipairs(sleepers(4)) do
    if others < 2 and name ~= leader and name ~= except then
      tell(name)
      others = others + 1
    end
  end
end

local function head_of_due()
--#if limits
  return moment()
--#else
  local head = call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
  return head[1] and tonumber(head[2])
--#end
end

-- Is the head new, or has it been overdue for 50 ms without a wake-up within the last 50? (`not (...)`, because
-- `woke` may be junk, and no comparison with `nan` holds.)
local function must_wake(before, after, woke)
  if not after then return false end
  if not before or after < before then return true end
  return after <= now - 50 and not (woke and woke > now - 50 and woke <= now)
end

-- Wakes after a call that may have changed the head of `due`. The last three are fields of `meta`.
local function wake_for_new_head(before, leader, paused, wokenAt)
  if paused == '1' or not must_wake(before, head_of_due(), tonumber(wokenAt)) then return end
  call('HSET', META, 'wokenAt', now)
  wake(holder(leader))
end
--#if limits

-- The same after a call that may have freed a place of a group, or of the queue.
local function wake_for_room(before)
  wake_for_new_head(before, unpack(call('HMGET', META, 'leader', 'paused', 'wokenAt')))
end
--#end
