-- The second index of a queue that uses groups, priorities or limits. Each job of `due` stands in `grouped` as well, as the digits of its
-- due time and its id, at its place: group * 16 + 9 - priority, where group 0 is no group. `ring` holds each group by its base, the place of
-- priority 0, and its score tells in which one state the group is:
--   ms - 9e15      at a limit until then
--   turn - 4.5e15  in line: it had a turn and has more, or it comes from its limit
--   0 or more      nothing of it is due before that; from then on it waits for its first turn since
--   ms + 8.65e15   nothing of it waits, and its window is over then: later than any time, so no claim looks at it
-- A turn is the time of joining in 1024ths of a ms, made unique.
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15

local function exact(n)
  return string.format('%.0f', n)
end

local function base_of(place)
  return exact(place - place % 16 + 9)
end

-- What `meta` says of limits, read once per script: `count` and `max` starts per `per` ms of the queue, the same of each group, and
-- `step`, by how many ms one step of priority makes a job look older; `counts`, whether a claim counts for any limit; `rated`, the last claim
-- from before a rate was there.
-- Of the limits of the queue each shard has an equal share; where
-- these do not divide, the first shards have one more.
local limits
local function read_limits()
  if limits then return limits end
  local text, turn, priorities, adopting, flip, rewound, widened, seenAt, rated =
    unpack(call('HMGET', META, 'limits', 'turn', 'priorities', 'adopting', 'flip', 'rewound', 'widened', 'seenAt', 'rated'))
  text = ' ' .. (text or '') .. ' '
  local function numbers(name)
    local a, b = string.match(text, ' ' .. name .. ':(%d+)/?(%d*) ')
    return whole(a), whole(b)
  end
  local index, shards = string.match(SHARD, '^(%d+)/(%d+)$')
  local function share(n)
    return n and index and math.floor(n / tonumber(shards)) + (tonumber(index) < n % tonumber(shards) and 1 or 0) or n
  end
  local latest = whole(turn) or 0
  -- One that is a day ahead is from before a jump of the clock, or junk.
  if latest > (now + 86400000) * 1024 then latest = 0 end
  limits = { count = share(numbers('count')), step = numbers('step') or 60000, groupCount = numbers('groupCount'), expired = {} }
  limits.max, limits.per = numbers('rate')
  limits.max = share(limits.max)
  limits.groupMax, limits.groupPer = numbers('groupRate')
  limits.blocks = numbers('block') == 1
  limits.counts = (limits.count or limits.max or limits.groupCount or limits.groupMax) ~= nil
  limits.turn, limits.flip = math.max(latest, now * 1024), flip == '1' and 1 or 0
  limits.priorities, limits.adopting, limits.rewound, limits.widened = priorities or '0', adopting, rewound, widened
  limits.seen, limits.rated = math.min(now, whole(seenAt) or 0), whole(rated) or 0
  return limits
end

-- The starts within a window, `ms:count:first`, at most 128 entries; `first` is the number of the first claim among them, counted from the
-- first one that the ms can have. One from the future (the clock went back) counts as now's: a claim that finds such ones (`ahead`) stores
-- them as now's, or they would count until that future comes.
local function window(text, max, per)
  local used, kept, ahead = 0, {}, false
  for at, n, first in string.gmatch(text or '', '(%d+):(%d+):?(%-?%d*)') do
    at, n = tonumber(at), tonumber(n)
    first = at * 1024 + (tonumber(first) or 0)
    if at > now then at, ahead = now, true end
    if at + per > now then
      used = used + n
      kept[#kept + 1] = { at, n, first }
    end
  end
  return { ahead = ahead, left = math.max(0, max - used), opens = kept[1] and kept[1][1] + per, kept = kept, per = per }
end

local function text_of_starts(kept)
  local texts = {}
  for i, entry in ipairs(kept) do texts[i] = exact(entry[1]) .. ':' .. exact(entry[2]) .. ':' .. exact(entry[3] - entry[1] * 1024) end
  return table.concat(texts, ' ')
end

-- When this queue is worth a look: nil while nothing can start before a run ends, else when its window opens, since when the first group is
-- in line, or when the first head comes due or the first group leaves its limit. Where nobody knows since when, as while groups
-- are still looked at, it says 50 ms ago: that is at once, and long enough for `must_wake` to tell again who missed a message, which with
-- `now` it never did.
local function moment()
  read_limits()
  if limits.count and call('ZCARD', RUNNING) >= limits.count then return nil end
  if limits.max then
    local rate = window(call('HGET', RATES, ''), limits.max, limits.per)
    if rate.left == 0 then return rate.opens or now + limits.per end
  end
  if limits.adopting or limits.rewound or limits.widened then return now - 50 end
  local first, opens = call('ZRANGE', RING, 0, 0, 'WITHSCORES'), math.huge
  if first[1] and tonumber(first[2]) < LINE then
    opens = tonumber(first[2]) - AT_LIMIT
    first = call('ZRANGE', RING, exact(LINE), '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
  end
  local at = first[1] and tonumber(first[2]) or math.huge
  if at < 0 then
    -- After the clock went back turns go on behind those that were given: who is in line may start now, not when the clock is there again.
    local since = math.floor((at - LINE) / 1024)
    return since <= now and since or now - 50
  end
  at = math.min(at, opens)
  return at < OVER and at or nil
end

local function place_in(envelope)
  local flag = string.sub(envelope or '', 2, 2)
  local from = flag == 'g' and 17 or flag == 'y' and 24
  local place = 0
  for at = from or 1, from and from + 8 or 0 do
    place = place * 79 + (string.byte(envelope, at) or 44) - 44
  end
  return from and place >= 0 and place < 2 ^ 53 and place or 9
end

-- Jobs that are about to enter `due` enter here first; never a read of the jobs of a group. A head that is overdue when it comes
-- counts from the latest time that a step has seen: who always comes with older jobs must not pass all others for ever. Not from now: where
-- a clock that was ahead is set right before a step comes, nobody knows that it went back (step/grace.lua), and its group would wait.
-- @param jobs due times and ids in turn, as ZADD takes them
-- @param places where these stand, as text
local function enter(jobs, places)
  if #places == 0 then return end
  read_limits()
  local entries, ring, known = {}, {}, {}
  local lastDue, time, prefix, lastPlace, base, entered
  for n, place in ipairs(places) do
    local due = jobs[2 * n - 1]
    if due ~= lastDue then
      lastDue, time = due, tonumber(due)
      prefix, time = digits(time), exact(math.max(limits.seen, math.min(time, 8.64e15)))
      entered = nil
    end
    if place ~= lastPlace then
      lastPlace, entered = place, nil
      local behind = tonumber(place) % 16
      base = behind == 9 and place or base_of(tonumber(place))
      local priority = exact(math.max(0, 9 - behind))
      if not known[behind] and not string.find(limits.priorities, priority, 1, true) then
        limits.priorities = limits.priorities .. priority
        call('HSET', META, 'priorities', limits.priorities)
      end
      known[behind] = true
    end
    entries[2 * n - 1], entries[2 * n] = place, prefix .. jobs[2 * n]
    if not entered then
      entered = true
      ring[#ring + 1], ring[#ring + 2] = time, base
    end
  end
  call('ZADD', GROUPED, unpack(entries))
  -- A group that is in line or at a limit has a lower score than any time.
  call('ZADD', RING, 'LT', unpack(ring))
end

-- Forgets a group of which nothing waits any more; while its window lasts a sweep does so when that is over (step/rates.lua).
local function end_group_if_empty(base)
  local place = tonumber(base)
  if call('ZRANGE', GROUPED, exact(place - 9), base, 'BYSCORE', 'LIMIT', 0, 1)[1] then return end
  local starts = call('HGET', RATES, base)
  if not starts then return call('ZREM', RING, base) end
  read_limits()
  local kept = window(starts, 0, limits.groupPer or 0).kept
  call('ZADD', RING, exact(OVER + (kept[1] and kept[#kept][1] + limits.groupPer or now)), base)
end

-- Jobs that leave `due` other than by a claim, or get another due time there; the caller changes `due` afterwards.
local function depart(...)
  for n, due in ipairs(call('ZMSCORE', DUE, ...)) do
    local member = due and digits(tonumber(due)) .. select(n, ...)
    local place = member and tonumber(call('ZSCORE', GROUPED, member) or nil)
    if place then
      call('ZREM', GROUPED, member)
      end_group_if_empty(base_of(place))
    end
  end
end

-- Gives a job that waits, or is to wait, this due time, at the place that its envelope names.
local function set_due(due, id, envelope)
  depart(id)
  enter({ due, id }, { exact(place_in(envelope)) })
  call('ZADD', DUE, due, id)
end

-- The places of runs that ended in their groups are free. Groups that waited for that stand in line at once: one that were written there
-- after the line is read might have two turns in one claim.
local function free(...)
  read_limits()
  local bases, seen = {}, {}
  if limits.groupCount then
    for _, place in ipairs(call('ZMSCORE', HELD, ...)) do
      local base = place and base_of(tonumber(place))
      if base and not seen[base] then
        seen[base] = true
        bases[#bases + 1] = base
      end
    end
  end
  call('ZREM', HELD, ...)
  local joined = {}
  for i, score in ipairs(#bases > 0 and call('ZMSCORE', RING, unpack(bases)) or {}) do
    if score and tonumber(score) < LINE then
      limits.turn = limits.turn + 1
      joined[#joined + 1] = exact(limits.turn + LINE)
      joined[#joined + 1] = bases[i]
    end
  end
  if #joined == 0 then return end
  call('ZADD', RING, unpack(joined))
  call('HSET', META, 'turn', exact(limits.turn))
end

-- Where retries block, a job whose run ended and that waits again, after whatever outcome, keeps the place of its group until it has run
-- once more, and the group waits for that.
-- @returns whether it keeps it
local function keeps_place(id)
  if not limits.blocks or limits.groupCount ~= 1 then return false end
  local place, due = tonumber(call('ZSCORE', HELD, id) or nil), tonumber(call('ZSCORE', DUE, id) or nil)
  if not (place and due) then return false end
  local base = base_of(place)
  -- Another job that keeps its place may be due sooner.
  if call('ZCOUNT', HELD, exact(tonumber(base) - 9), base) > 1 then due = now end
  call('ZADD', RING, exact(AT_LIMIT + math.min(due, -LINE - 1)), base)
  return true
end

-- From now on scripts and libraries that know no groups stay away. What waits here already is sorted in by the steps of workers. They have
-- to hear of that also where they were woken a moment ago, for something else; and while they sort no head would pass for a new one.
-- @returns whether it is so from now on; until then the queue had no head of groups
local function begin_groups(needs)
  if is_limited(needs) then return false end
  call('HSET', META, 'needs', (needs and needs ~= '' and needs .. ' ' or '') .. 'limits')
  if call('ZCARD', DUE) > 0 then
    call('HSET', META, 'adopting', '-inf ')
    call('HDEL', META, 'wokenAt')
  end
  return true
end

-- Whatever these scripts may write is first read by a command of its type.
local function check_groups()
  call('ZCARD', GROUPED); call('ZCARD', RING); call('ZCARD', HELD); call('HLEN', RATES)
end
