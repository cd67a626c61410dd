-- Wake-ups only shorten the polling, on which correctness rests. The leader and two idle processes are woken, never
-- all: PUBLISH costs Redis 31 us with one subscriber and 6.4 ms with a thousand.
local ROLE_MS = 6000

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
  return redis.pcall('PUBLISH', string.match(name, '^(.*)#%d+$') or name, DUE)
end

-- The latest entries first: those processes are the most likely to live. Entries far in the future are from before a
-- jump of the clock. Of a wrong type it wakes nobody, instead of failing a script after its writes.
-- @returns names and times in turn
local function sleepers(most)
  local entries = redis.pcall('ZRANGE', IDLE, now + 600000, '(' .. now, 'BYSCORE', 'REV', 'LIMIT', 0, most, 'WITHSCORES')
  return entries.err and {} or entries
end

-- A worker that looks again every few seconds has an entry for some seconds more: it lives, or died just now. One for 422 s
-- (lib/worker/poll-schedule.ts) is of a worker that rests, or of one that died minutes ago: nobody can tell, but where it is new. It ends with
-- half a ms (step/leader.lua): when it is nearly over it would pass for one of the others, and a dead worker be the leader.
-- @param score of an entry; of a wrong type an error, which is no number
local function is_long(score)
  return (tonumber(score) or 0) >= now + 415000
end
-- Until when a sleeper has the role of the leader that it is given now: 6 s after it entered, or 1 s after the end of its sleep. It may just have
-- died: then all that is due is late for as long.
-- @returns nil where nobody can tell whether it lives
local function leads_until(score)
  local till = is_long(score) and score - 416000 or tonumber(score) % 1 == 0 and score - 1000
  return till and math.min(till, now + ROLE_MS) or nil
end

local function wake(leader, except)
  if leader and leader ~= except then tell(leader) end
  local others, old = 0, 0
  -- Four of those that looked lately, because the leader and `except` may be among them. Then of those that rest, of whom some may be
  -- dead, more: they all look at what is new.
  local entries = sleepers(14)
  for i = 1, #entries, 2 do
    local name = entries[i]
    if others < 2 and old < 10 and name ~= leader and name ~= except then
      local heard = tell(name)
      if leads_until(entries[i + 1]) then
        others = others + 1
      else
        old = old + 1
        -- On a Cluster it may have heard at another node: then it enters again with the step that it sends now.
        if heard == 0 then redis.pcall('ZADD', IDLE, 'XX', now + 1000, name) end
      end
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
  local after = head_of_due()
  if after and (not before or after < before) then mark_changed() end
  if paused == '1' or not must_wake(before, after, tonumber(wokenAt)) then return end
  call('HSET', META, 'wokenAt', now)
  wake(holder(leader))
end
--#if limits

-- The same after a call that may have freed a place of a group, or of the queue.
local function wake_for_room(before)
  wake_for_new_head(before, unpack(call('HMGET', META, 'leader', 'paused', 'wokenAt')))
end
--#end
