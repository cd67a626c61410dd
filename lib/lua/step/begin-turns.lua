-- What stands wrong or is not there yet is put right before a claim by turns.
-- Needs what was read, and place_behind().

-- After a jump of the clock, and where a limit was changed, groups stand at a limit for longer than it can last.
local function sweep_ring()
  local longest = now + math.max(limits.groupPer or 0, limits.blocks and 86400000 or 5000)
  local far = call('ZRANGE', RING, '(' .. exact(AT_LIMIT + longest), '(' .. exact(LINE), 'BYSCORE', 'LIMIT', 0, SWEEP)
  for _, base in ipairs(far) do call('ZADD', RING, 'XX', exact(AT_LIMIT + now), base) end
end

-- Jobs that were stored before this queue had groups are sorted in, in the order in which they are due. They have no group.
local function adopt()
  local score, id = string.match(limits.adopting, '^(%S+) (.*)$')
  local from = (score and score ~= '-inf') and place_behind(DUE, score, id) or 0
  local found = call('ZRANGE', DUE, from, from + MOST - 1, 'WITHSCORES')
  local all, old, jobs, at = {}, {}, {}, {}
  for n = 1, #found / 2 do
    all[n], old[n] = found[2 * n - 1], digits(tonumber(found[2 * n])) .. found[2 * n - 1]
  end
  for n, place in ipairs(#all > 0 and call('ZMSCORE', GROUPED, unpack(old)) or {}) do
    if not place then
      jobs[#jobs + 1], jobs[#jobs + 2], at[#at + 1] = found[2 * n], all[n], '9'
    end
  end
  enter(jobs, at)
  if #all < MOST then
    call('HDEL', META, 'adopting')
    limits.adopting = nil
  else
    put('adopting', found[#found] .. ' ' .. all[#all])
  end
end

-- When the first job of a group is due; nil without any.
local function head_of(base)
  local head
  for digit in string.gmatch(limits.priorities, '%d') do
    local place = exact(base - tonumber(digit))
    local member = call('ZRANGE', GROUPED, place, place, 'BYSCORE', 'LIMIT', 0, 1)[1]
    if member then head = math.min(head or math.huge, time_at(member, 1) or 0) end
  end
  return head
end

-- An overdue job counts from the time at which it came. After the clock went back that time is yet to come, and its group would wait until
-- then: each group that waits is looked at once, some with each step. Not those in line or at a limit, which stand before them.
local function rewind()
  local score, member = string.match(limits.rewound, '^(%d+) (.*)$')
  local from = place_behind(RING, score or '0', member or '')
  local found = call('ZRANGE', RING, from, from + SWEEP - 1, 'WITHSCORES')
  for i = 1, #found, 2 do
    local base, at = tonumber(found[i]), tonumber(found[i + 1])
    local head = base and at > now and head_of(base)
    if head and head < at then call('ZADD', RING, 'XX', exact(math.max(now, head)), found[i]) end
  end
  if #found < 2 * SWEEP then
    call('HDEL', META, 'rewound')
    limits.rewound = nil
  else
    put('rewound', exact(tonumber(found[#found])) .. ' ' .. found[#found - 1])
  end
end

-- Where other limits hold, each group at a limit is looked at anew, some with each step: those first that would wait for the longest. So
-- nobody looks without end at groups that come back to a limit meanwhile, which then stand behind where this has come to, or are met once more.
local function widen()
  local score, member = string.match(limits.widened, '^(-?%d+) (.*)$')
  local before = 0
  if member == '' then
    before = call('ZCOUNT', RING, '-inf', '(' .. score)
  elseif member then
    before = place_behind(RING, score, member)
    if tonumber(call('ZSCORE', RING, member) or nil) == tonumber(score) then before = before - 1 end
  end
  local from = math.max(before - MOST, call('ZCOUNT', RING, '-inf', exact(AT_LIMIT + now)))
  local found, anew = from < before and call('ZRANGE', RING, from, before - 1, 'WITHSCORES') or {}, {}
  for i = 1, #found, 2 do anew[i], anew[i + 1] = exact(AT_LIMIT + now), found[i] end
  if #anew > 0 then call('ZADD', RING, unpack(anew)) end
  if #found < 2 * MOST then
    call('HDEL', META, 'widened')
    limits.widened = nil
  else
    put('widened', exact(tonumber(found[2])) .. ' ' .. found[1])
  end
end

if not answer then
  read_limits()
  if limits.widened then widen() end
  if limits.rewound then rewind() end
  if limits.adopting then adopt() end
  if sweeps then sweep_ring() end
end
