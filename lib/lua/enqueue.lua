-- Stores jobs: payload, index and wake-up in one step. The only script that a full Redis refuses.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number
--       then per run of jobs with one spec: `spec`, or `n*spec` for n of them, and of each job: id, rest
--       spec  = mode (n new library id, k keep, o keep what is dead as well, p replace, u replace at the due time it has,
--               r reschedule, x reject, m moved here from another queue), d|a, delay or instant in ms,
--               and only where needed " expiry maxWait uniqueFor" with expiry = i<ms after due> or a<instant>, and - for none,
--               and after these " limit": most jobs that may wait and run, of queues that have one;
--       rest  = header and payload as lib/job/envelope.ts wrote them; of a moved job its envelope, which stays as it is
-- Reply text: now, with a + before it when nothing of this shard was stored; then per job `outcome state due` (o: c created, k kept, p replaced, r rescheduled, x rejected, f full,
--       b publishing is paused, which is said of all of them;
--       state: l delayed, d due, r running, x dead, c completed within uniqueFor, - none), or =n for n more of which it is said
-- Cost  O(jobs x log n); at most 200 jobs
--#include keys
--#include clock
--#include layout
--#include envelope
--#include record
--#include session
--#include begin
--#include erase
--#include wake
--#include followups

local seq = sequence(ARGV[1])
local replied, leader, paused, wokenAt, enqueuedBefore, since, publishingPaused = begin(seq, false, 'leader', 'paused', 'wokenAt', 'enqueued', 'since', 'publishingPaused')
if replied then return replied end

-- What is asked for: the specs, how many jobs each has, and behind which argument these stand.
local specs, counts, starts, checked, limited = {}, {}, {}, false, false
do
  local at, n = 2, 0
  while at <= #ARGV do
    local spec, count = ARGV[at], 1
    local star = string.find(spec, '*', 1, true)
    if star then count, spec = tonumber(string.sub(spec, 1, star - 1)), string.sub(spec, star + 1) end
    n = n + 1
    specs[n], counts[n], starts[n] = spec, count, at
    local rules = string.find(spec, ' ', 1, true)
    if rules and string.find(spec, ' %S+ %S+ %S+ %d+$', rules) then limited = true end
    if string.byte(spec) ~= 110 or rules and not string.find(spec, '^ %S+ %- %- ?%d*$', rules) then checked = true end
    at = at + 1 + 2 * count
  end
end

if publishingPaused == '1' then
  -- Remembered like every answer: a copy of this call that arrives after the pause is refused as well.
  local more = (#ARGV - 1 - #specs) / 2 - 1
  local answer = now .. ' b - 0' .. (more > 0 and ' =' .. more or '')
  remember(seq, answer)
  return answer
end

-- Read: what is there under these ids, and the type of every key that may be written.
local head = head_of_due()
-- Jobs that wait or run: this call adds what it makes.
local size = limited and call('ZCARD', DUE) + call('ZCARD', RUNNING) + call('ZCARD', QUARANTINE) or 0
local due, running, dead, quarantined, windowEnds, burstStarts, known, history
if checked then
  local ids = {}
  for r, start in ipairs(starts) do
    for k = 1, counts[r] do ids[#ids + 1] = ARGV[start + 2 * k - 1] end
  end
  call('HLEN', JOBS); call('HLEN', FOLLOWUPS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
  due, running = call('ZMSCORE', DUE, unpack(ids)), call('ZMSCORE', RUNNING, unpack(ids))
  dead, quarantined = call('ZMSCORE', DEAD, unpack(ids)), call('ZMSCORE', QUARANTINE, unpack(ids))
  windowEnds, burstStarts = call('ZMSCORE', UNIQUE, unpack(ids)), call('HMGET', DEBOUNCE, unpack(ids))
  known, history = {}, call('ZCARD', COMPLETED)
  if history > 0 then call('HLEN', HISTORY) end
end

local function options_of(spec)
  local at = string.find(spec, ' ', 1, true)
  local value, expiry, maxWait, uniqueFor, limit = string.sub(spec, 3)
  if at then value, expiry, maxWait, uniqueFor, limit = string.match(spec, '^..(%d+) (%S+) (%S+) (%S+) ?(%d*)$') end
  local dueAt = tonumber(value)
  if string.byte(spec, 2) == 100 then dueAt = now + dueAt end
  return dueAt, expiry, tonumber(maxWait), tonumber(uniqueFor), tonumber(limit)
end

local function expiry_of(expiry, dueAt)
  if not expiry or expiry == '-' then return nil end
  local ms = tonumber(string.sub(expiry, 2))
  if string.sub(expiry, 1, 1) == 'i' then return dueAt + ms end
  return ms
end

-- The newest version of a job: a replacement that waits for the end of the run, else what runs or waits.
local function newest(id, after)
  return follower(after) or call('HGET', JOBS, id)
end

-- Decide and write. Ids that stand twice in one call are decided in order: `known` and `bursts` hold what it already did.
local out = { now }
local bursts = {}
local zadd, hset, pending, anew, created, windows = {}, {}, 0, {}, 0, 0
-- The head of `due` as these writes leave it; false: it has to be read again.
local after = head or math.huge
local function put(id, dueAt, envelope)
  zadd[pending + 1], zadd[pending + 2] = dueAt, id
  hset[pending + 1], hset[pending + 2] = id, envelope
  pending = pending + 2
  created = created + 1
end

-- The record first: this is what tells a plain call that `jobs` is of a wrong type, and `due` was read.
local function flush()
  if pending == 0 then return end
  call('HSET', JOBS, unpack(hset))
  call('ZADD', DUE, unpack(zadd))
  zadd, hset, pending = {}, {}, 0
end

-- When the job that waits is due, or what waits for the end of a run; nil when nothing waits.
local function kept_due(n, id, after_run)
  if running[n] and not known[id] then
    local envelope = follower(after_run)
    return envelope and due_of(envelope)
  end
  if known[id] or due[n] then return known[id] or tonumber(due[n]) end
  return quarantined[n] and due_of(call('HGET', JOBS, id) or '')
end

-- No second job under this id until then.
local function open(id, uniqueFor)
  call('ZADD', UNIQUE, now + uniqueFor, id)
  windows = windows + 1
end

local function decide(n, spec, id, rest)
  local mode = string.sub(spec, 1, 1)
  local dueAt, expiry, maxWait, uniqueFor, limit = options_of(spec)
  local state, ghost, burst, after_run
  if checked then
    local at = tonumber(due[n])
    local indexed = at or running[n] or dead[n] or quarantined[n]
    -- An index without a record is no job: this one takes its place. (A running or dead one is left to the call that settles it.)
    if indexed and not known[id] and not running[n] and not dead[n] and call('HEXISTS', JOBS, id) == 0 then
      indexed, ghost = nil, true
    end
    if known[id] then
      state = known[id] <= now and 'd' or 'l'
    elseif indexed then
      state = running[n] and 'r' or dead[n] and 'x' or (not at or at <= now) and 'd' or 'l'
      after_run = state == 'r' and call('HGET', FOLLOWUPS, id)
    elseif windowEnds[n] and tonumber(windowEnds[n]) > now then
      state = 'c'
    end
    if maxWait then
      burst = state and state ~= 'c' and (bursts[id] or tonumber(burstStarts[n])) or now
      dueAt = math.min(dueAt, burst + maxWait)
    end
  end

  local outcome = 'c'
  -- A run that was cancelled, with nothing to follow it, leaves its id to the next job, and so does a dead letter: a call
  -- that would have kept a job makes a new one in its place.
  local ending = after_run == '!' and mode ~= 'm'
  local instead = state == 'x' and mode == 'k' or ending and mode ~= 'x'
  if state and mode == 'x' then
    outcome = 'x'
  elseif state == 'c' or (state and mode ~= 'p' and mode ~= 'u' and mode ~= 'r' and not instead) then
    outcome = 'k'
  elseif instead and not ending and limit and size >= limit then
    outcome = 'f'
  elseif state then
    outcome = mode == 'r' and not ending and 'r' or 'p'
    after = false
    flush()
    if mode == 'u' then dueAt = kept_due(n, id, after_run) or dueAt end
    local envelope = outcome == 'r' and newest(id, after_run)
    envelope = envelope and moved(envelope, dueAt) or sealed(rest, stamp_of(dueAt, expiry_of(expiry, dueAt)))
    if state == 'r' then
      -- Only `followups` may be written while a run lasts: it decides when the run ends, so there are never two leases at once.
      call('HSET', FOLLOWUPS, id, is_cancelled(after_run) and '!' .. envelope or envelope)
      if ending and uniqueFor then open(id, uniqueFor) end
    else
      call('ZADD', DUE, dueAt, id)
      call('HSET', JOBS, id, envelope)
      if outcome == 'p' or state == 'x' then
        forget_attempts(id)
      else
        disown(id)
      end
      call('ZREM', QUARANTINE, id)
      call('ZREM', DEAD, id)
      if state == 'x' then
        size = size + 1
        -- Another life, another window: the one of the job that died says nothing of this one.
        if uniqueFor then open(id, uniqueFor) end
      end
      known[id] = dueAt
    end
  elseif limit and size >= limit and not ghost then
    outcome = 'f'
  else
    if not ghost then size = size + 1 end
    if ghost then after = false elseif after then after = math.min(after, dueAt) end
    put(id, dueAt, mode == 'm' and rest or sealed(rest, stamp_of(dueAt, expiry_of(expiry, dueAt))))
    if checked then known[id] = dueAt end
    if checked and history > 0 then anew[#anew + 1] = id end
    if ghost then
      call('ZREM', QUARANTINE, id)
      forget_attempts(id)
    end
    if uniqueFor then open(id, uniqueFor) end
  end
  if burst and outcome ~= 'k' and outcome ~= 'x' and outcome ~= 'f' then
    bursts[id] = burst
    call('HSET', DEBOUNCE, id, burst)
  end
  if (outcome == 'k' or outcome == 'x') and state ~= 'c' then
    dueAt = known[id] or tonumber(due[n]) or due_of(call('HGET', JOBS, id) or '') or 0
  end
  return outcome .. ' ' .. (state or '-') .. ' ' .. string.format('%.0f', dueAt)
end

local n = 0
for r, spec in ipairs(specs) do
  local from, till = starts[r] + 1, starts[r] + 2 * counts[r]
  if checked or limited then
    for at = from, till, 2 do
      n = n + 1
      out[n + 1] = decide(n, spec, ARGV[at], ARGV[at + 1])
    end
  else
    -- Most calls: new ids and nothing to look up, so what is said once for many jobs is worked out once.
    local dueAt, expiry = options_of(spec)
    local score, stamp = string.format('%.0f', dueAt), stamp_of(dueAt, expiry_of(expiry, dueAt))
    after = math.min(after, dueAt)
    out[#out + 1] = 'c - ' .. score
    if counts[r] > 1 then out[#out + 1] = '=' .. counts[r] - 1 end
    for at = from, till, 2 do put(ARGV[at], score, sealed(ARGV[at + 1], stamp)) end
  end
end
flush()

if #anew > 0 then
  -- One id is one job: what was kept of the one before gives way. Not sooner: an old server that is full lets everything pass
  -- after a first removal.
  call('ZREM', COMPLETED, unpack(anew))
  call('HDEL', HISTORY, unpack(anew))
end
if windows > 0 then
  -- Twice as many as were added, so that ended windows go away also where no worker sweeps.
  local ended = call('ZRANGE', UNIQUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, 2 * windows)
  if #ended > 0 then call('ZREM', UNIQUE, unpack(ended)) end
end
local answer = (since and '' or '+') .. table.concat(out, ' ')
remember(seq, answer)
local fields = { 'enqueued', (whole(enqueuedBefore) or 0) + created }
if not since then
  fields[3], fields[4], fields[5], fields[6] = 'layout', LAYOUT, 'since', now
end
if not after then after = head_of_due() elseif after == math.huge then after = nil end
local woken = paused ~= '1' and must_wake(head, after, tonumber(wokenAt))
if woken then
  fields[#fields + 1] = 'wokenAt'
  fields[#fields + 1] = now
end
call('HSET', META, unpack(fields))
if woken then wake(holder(leader)) end
return answer
