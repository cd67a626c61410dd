-- Claims by turns: which jobs of which groups may start now, in which order, and what becomes of their groups.
-- Needs what was read, the rates, and reserved_for(). Assigns claim_by_turns(), which step.lua declares.

local joining, leaving, rates = {}, {}, {}
local function join(base)
  limits.turn = limits.turn + 1
  joining[#joining + 1] = exact(limits.turn + LINE)
  joining[#joining + 1] = base
end

local function write_ring()
  if #joining > 0 then call('ZADD', RING, unpack(joining)) end
  if #leaving > 0 then
    call('ZREM', RING, unpack(leaving))
    if call('HLEN', RATES) > 0 then call('HDEL', RATES, unpack(leaving)) end
  end
  if #rates > 0 then call('HSET', RATES, unpack(rates)) end
  joining, leaving, rates = {}, {}, {}
end

-- Who is looked at, each once: groups whose head has come due, and those in line, which those join whose limit may be over.
-- @returns their bases, and how many had nothing due until now
local function read_line(want, room)
  for _, base in ipairs(call('ZRANGE', RING, '-inf', exact(AT_LIMIT + now), 'BYSCORE', 'LIMIT', 0, want + 50)) do join(base) end
  write_ring()
  -- Some more than there is room for: of a group whose head was cancelled or rescheduled nothing may be due.
  local most = room + 16
  local line = call('ZRANGE', RING, '0', exact(now), 'BYSCORE', 'LIMIT', 0, most)
  local newcomers = #line
  for n, base in ipairs(call('ZRANGE', RING, exact(LINE), '(0', 'BYSCORE', 'LIMIT', 0, most)) do line[newcomers + n] = base end
  return line, newcomers
end

-- Of each group that was looked at, by its number in the line: how many jobs it may start, how many it was given and how many of those
-- started, its window, when what follows them is due, and whether some of what it was given did not fit. A table of each would cost more
-- than all else of a group with one job.
local looked = { free = {}, took = {}, started = {}, windows = {}, heads = {}, done = {}, past = {}, retries = {}, cut = {} }
-- The jobs that were picked: what stands in `grouped`, its due time and place, and the number of its group.
local picked, picks = { members = {}, dues = {}, places = {}, groups = {} }, 0

local pick -- A script has at most 200 local variables at a time: what only one function needs is out of sight of the others.
do
local allow, visit
do

-- Of a group in which one job runs at a time: the job that has the place while it waits for its next attempt. Several have it that had
-- started before the limit became one: then the earliest goes first, and none while another one of them runs or is in quarantine.
local function next_attempt(lowest, base)
  local ids, first = call('ZRANGE', HELD, lowest, base, 'BYSCORE', 'LIMIT', 0, 1000), nil
  for n, score in ipairs(call('ZMSCORE', DUE, unpack(ids))) do
    local due = tonumber(score or nil)
    if not due then return nil end
    if not first or due < first.due then first = { due = due, member = digits(due) .. ids[n] } end
  end
  return first
end

-- What a group may start by its own limits. Jobs without a group have none.
function allow(g, base, text)
  local most = math.huge
  if base ~= '9' then
    if limits.groupCount then
      local lowest = exact(tonumber(base) - 9)
      most = limits.groupCount - call('ZCOUNT', HELD, lowest, base)
      if most < 1 and limits.groupCount == 1 then
        looked.retries[g] = next_attempt(lowest, base)
        if looked.retries[g] and looked.retries[g].due <= now then most = 1 end
      end
    end
    if limits.groupMax then
      looked.windows[g] = window(text, limits.groupMax, limits.groupPer)
      most = math.min(most, looked.windows[g].left - reserved_for(base))
    end
  end
  looked.free[g], looked.took[g], looked.started[g] = math.max(0, most), 0, 0
end

end
do

local function give(g, member, due, place)
  picks = picks + 1
  picked.members[picks], picked.dues[picks], picked.places[picks], picked.groups[picks] = member, due, place, g
end

-- The due time in a member. Junk is due at once: the claim finds that it is no job.
local function due_in(member)
  local a, b, c, d, e, f, g = string.byte(member, 1, 7)
  return g and ((((((a - 44) * 79 + b - 44) * 79 + c - 44) * 79 + d - 44) * 79 + e - 44) * 79 + f - 44) * 79 + g - 44 or 0
end

-- Redis writes a number that it is given with all digits of a double, which costs as much as the look at the index.
local text_of = { [0] = '0', '1', '2', '3', '4', '5', '6' }

-- The next jobs of a group by the time at which they would have been due with their priority; those that are not due follow.
local function by_priority(g, base, n)
  local found, past = {}, looked.past[g] or {}
  looked.past[g] = past
  for digit in string.gmatch(limits.priorities, '%d') do
    local priority = tonumber(digit)
    local place = exact(tonumber(base) - priority)
    for _, member in ipairs(call('ZRANGE', GROUPED, place, place, 'BYSCORE', 'LIMIT', text_of[past[priority] or 0] or past[priority], text_of[n] or n)) do
      local due = due_in(member)
      local order = due <= now and due - priority * limits.step or due
      found[#found + 1] = { member = member, due = due, order = order, nth = #found, priority = priority, place = place }
    end
  end
  table.sort(found, function(a, b)
    if a.order ~= b.order then return a.order < b.order end
    return a.nth < b.nth
  end)
  return found, past
end

-- One visit: the group is given its next jobs, at most `most`. Where all have one priority their order is that of the index.
function visit(g, base, most)
  looked.heads[g] = nil
  local retry = looked.retries[g]
  if retry and retry.due <= now then
    -- It goes before all others. Whether there are any shows when it has ended.
    local place = call('ZSCORE', GROUPED, retry.member)
    if place and most > 0 then
      give(g, retry.member, retry.due, exact(tonumber(place)))
      looked.took[g] = looked.took[g] + 1
    end
    looked.heads[g] = now
  elseif limits.priorities == '0' then
    local found = call('ZRANGE', GROUPED, base, base, 'BYSCORE', 'LIMIT', text_of[looked.took[g]] or looked.took[g], text_of[most + 1] or most + 1)
    for i = 1, #found do
      local member = found[i]
      local due = due_in(member)
      if i > most or due > now then
        looked.heads[g] = due
        break
      end
      give(g, member, due, base)
      looked.took[g] = looked.took[g] + 1
    end
  else
    local found, past = by_priority(g, base, most + 1)
    for i, job in ipairs(found) do
      if i > most or job.due > now then
        looked.heads[g] = job.due
        break
      end
      give(g, job.member, job.due, job.place)
      looked.took[g] = looked.took[g] + 1
      past[job.priority] = (past[job.priority] or 0) + 1
    end
  end
  looked.done[g] = not looked.heads[g] or looked.heads[g] > now or looked.took[g] >= looked.free[g]
end

end

local TURN = 5 -- Jobs of one turn, or an equal share of the claim if that is more.

-- Picks the jobs whose turn it is, of groups as far as they are looked at.
function pick(line, newcomers, room)
  local texts = limits.groupMax and call('HMGET', RATES, unpack(line)) or {}
  local open = #line
  -- While others are in line they keep half of the claim; of a claim of one, each second.
  limits.flip = 1 - limits.flip
  local reserved = #line > newcomers and math.floor((room + limits.flip) / 2) or 0
  for pass = 1, 3 do
    local left = open
    for g, base in ipairs(line) do
      local spare = pass == 1 and g <= newcomers and room - reserved or room
      if spare > 0 and not looked.done[g] then
        if not looked.free[g] then allow(g, base, texts[g]) end
        local most = left > 0 and spare > TURN * left and math.floor(spare / left) or TURN
        local before = picks
        visit(g, base, math.min(spare, most, looked.free[g] - looked.took[g]))
        room = room - (picks - before)
        if looked.done[g] then open = open - 1 end
      end
      left = left - 1
    end
    if room <= 0 or open == 0 then break end
  end
end

end

-- Where a group goes after its turn: to its limit, to when its head is due, back into line, or away. Where what it was given did not start,
-- but went to the quarantine, its rate has room all the same: the next claim looks again. Where some of it did not fit it stays where it is.
local function end_turn(g, base)
  local rate, head, ends = looked.windows[g], looked.heads[g], nil
  if rate and looked.started[g] > 0 then
    local text
    text, ends = book(rate, looked.started[g])
    rates[#rates + 1] = base
    rates[#rates + 1] = text
  elseif rate and #rate.kept > 0 then
    ends = rate.kept[#rate.kept][1] + rate.per
    if rate.ahead then
      rates[#rates + 1] = base
      rates[#rates + 1] = text_of_starts(rate.kept)
    end
  end
  if looked.cut[g] then return end
  if not head and not ends then
    leaving[#leaving + 1] = base
    return
  end
  if not head then
    joining[#joining + 1] = exact(OVER + ends)
  elseif head > now then
    joining[#joining + 1] = exact(head)
  elseif looked.took[g] >= looked.free[g] and looked.took[g] == looked.started[g] and not (looked.kept and looked.took[g] > 0) then
    local till = looked.retries[g] and looked.retries[g].due > now and math.min(looked.retries[g].due, -LINE - 1) or now + 5000
    if rate and rate.left <= looked.started[g] then till = rate.opens or ends elseif reserved_for(base) > 0 then till = limits.reservedTill end
    joining[#joining + 1] = exact(AT_LIMIT + till)
  else
    return join(base)
  end
  joining[#joining + 1] = base
end

-- What `grouped` holds of an id that is not due then is a leftover, and no job.
-- @returns the ids and due times of those that are in `due`
local function indexed()
  local ids, kept, members, dues, groups = {}, 0, picked.members, picked.dues, picked.groups
  for n = 1, picks do ids[n] = string.sub(members[n], 8) end
  local scores = call('ZMSCORE', DUE, unpack(ids))
  for n = 1, picks do
    local member, score = members[n], tonumber(scores[n] or nil)
    if score and (score == dues[n] or digits(score) == string.sub(member, 1, 7)) then
      kept = kept + 1
      if kept < n then
        members[kept], dues[kept], picked.places[kept], groups[kept] = member, dues[n], picked.places[n], groups[n]
        ids[kept], scores[kept] = ids[n], scores[n]
      end
    else
      call('ZREM', GROUPED, member)
      looked.took[groups[n]] = looked.took[groups[n]] - 1
    end
  end
  for n = kept + 1, picks do ids[n], scores[n] = nil, nil end
  picks = kept
  return ids, scores
end

-- @param take claims these ids, as far as they fit. It returns those that started, and how many it has looked at
-- @returns how many starts are to be booked
local function start(take)
  local ids, scores = indexed()
  if picks == 0 then return 0 end
  local runs, reached = take(DUE, ids, scores)
  -- What did not fit into the claim goes back to its group, whose turn is not over: behind those that filled the claim it would come after
  -- them again, and have nothing for as long as they have jobs. The first one has filled it alone, or has had all that it was given.
  for n = picks, reached + 1, -1 do
    local g = picked.groups[n]
    looked.took[g], looked.heads[g] = looked.took[g] - 1, picked.dues[n]
    looked.cut[g] = g ~= picked.groups[1]
  end
  local runsNow, held, booked = {}, {}, 0
  for _, id in ipairs(#runs < reached and runs or {}) do runsNow[id] = true end
  for n = 1, reached do
    local id, place, g = ids[n], picked.places[n], picked.groups[n]
    local isRun = #runs == reached or runsNow[id]
    if isRun and limits.expired[id] then
      -- It never runs, so no limit is touched, and its group may start another one.
      isRun, looked.took[g] = false, looked.took[g] - 1
    elseif isRun then
      looked.started[g], booked = looked.started[g] + 1, booked + 1
    end
    -- One that lost leases before went to the quarantine, and has its place as those that run.
    if #place > 1 and (isRun or call('ZSCORE', QUARANTINE, id)) then
      held[#held + 1] = place
      held[#held + 1] = id
    end
  end
  local long = #held > 32 and '{' .. string.rep('-', 64) .. '}' -- As in step/claim.lua: it makes a skiplist of it.
  if long then held = { '0', long, unpack(held) } end
  -- One that kept its place while it waited, before retries blocked no more, takes no other one: its group may start more.
  if #held > 0 and call('ZADD', HELD, unpack(held)) < #held / 2 then looked.kept = not limits.blocks end
  if long then call('ZREM', HELD, long) end
  call('ZREM', GROUPED, unpack(picked.members, 1, reached))
  return booked
end

function claim_by_turns(want, take)
  -- One more: where there is more room than is wanted, nothing of that has to be left.
  local room = room_of(want + 1)
  local left = room - reserved_for('')
  -- Whoever waits for the head would else ask without pause.
  if room > 0 and left == 0 then limits.lookAgain = limits.reservedTill end
  room = math.min(want, left)
  if room <= 0 then return end
  local line, newcomers = read_line(want, room)
  if #line == 0 then return end
  pick(line, newcomers, room)
  if picks > 0 then book_starts(start(take)) end
  put('flip', limits.flip)
  for g, base in ipairs(line) do
    if looked.free[g] then end_turn(g, base) end
  end
  write_ring()
  put('turn', exact(limits.turn))
end
