-- Names the leader, the one worker that sleeps until the next head is due, and decides who is woken.
-- Needs what was claimed. Gives `head`, `leader` and `woken`.

local head = headLeft
if moves then head = head_of_due() end --#limits head = head_of_due(); if limits.lookAgain and head and head <= now then head = limits.lookAgain end
local claimed = filled / 3
local free = slots > claimed and not flag('o') or flag('f')
local woken
if free then
  if flag('i') then
    -- For who rests, with half a ms: see shared/wake.lua.
    local idleFor = tonumber(ARGV[8])
    call('ZADD', IDLE, now + idleFor + (idleFor >= 400000 and 0.5 or 0), me)
    -- Processes that died in their sleep.
    local gone = call('ZRANGE', IDLE, '-inf', now - ROLE_MS, 'BYSCORE', 'LIMIT', 0, 10)
    if #gone > 0 then call('ZREM', IDLE, unpack(gone)) end
  end
  local late = claimed > 0 and now - (tonumber(firstDue) or now) > 20
  if not leader or late or (leader == me and leaderTill < now + ROLE_MS / 2) then
    put('leader', me .. ' ' .. string.format('%.0f', now + ROLE_MS))
    leader = me
  end
elseif not flag('b') then
  redis.pcall('ZREM', IDLE, me) -- Like all that is only for waking: it must not fail a step.
  if leader == me then
    local successor = sleepers(1)
    -- Who looked longer ago may be dead: it is told like others, and whoever looks first has the role.
    local till = successor[1] and leads_until(successor[2])
    leader = till and successor[1] or nil
    put('leader', till and leader .. ' ' .. string.format('%.0f', till) or '')
    woken = leader or successor[1] and true
  end
end
if takenBack > 0 or head and (not headBefore or head < headBefore) then mark_changed() end
do
  -- The leader takes what it can, and leaves jobs that have been overdue for 50 ms. Without a wake-up others might sleep for seconds beside them.
  local needsHelp = claimed > 0 and head and head <= now - 50
  local toSelf = (free or flag('b')) and leader == me and not needsHelp
  if not paused and (takenBack > 0 and nQuarantined > 0 or not toSelf and must_wake(headBefore, head, tonumber(wokenAt))) then
    put('wokenAt', now)
    woken = woken or true
  end
end
