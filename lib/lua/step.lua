-- A worker's round trip: settle what ended, renew, take back expired leases, claim up to the free slots.
-- KEYS  the shard's fixed list; SESSION is this worker session's own
-- ARGV  1 name of this worker: channel of its process, `#`, a number
--        2 session sequence number   3 lease ms    4 jobs wanted (0..200)   5 byte limit of a claim
--       6 flags: a this process holds nothing else and no other claim of it is out (the claim may be marked "alone")
--                b nothing is left to ask for beside a claim that is out: this step says nothing of who waits
--                f it has more free slots than it asks for here   i (re)enter `idle`
--                s sweep now (take-back, age of dead letters, expiry of `done`)   v isolator for the suspects
--                k completed jobs are kept; how many and for how long, ms, are then the last two arguments
--       7 jobs wanted from the quarantine (`suspects`) instead; by a process that holds something with a blank and the ms
--          that they must have waited there   8 how long the entry in `idle` is good for, ms
--       9 dead letters kept   10 age of dead letters, ms   11 n renewals   12 n groups   13 n outcomes
--       then per renewal: claim, ids held, lease ms of its own or 0, and .5 more when alone; per group of completed jobs: claim, n, id...;
--       per outcome: verb, claim, id, a, b, c
--         r retry     a delay ms, b errors          s snooze   a delay ms, b '' or header and payload
--         d dead      a reason, b errors, c charge  x expired  -     l release  a due ms
--         (errors: the whole record; of an attempt a second line with the short one, which is kept beside those before it)
-- Reply now, claim number, head of due or -1, first lease deadline or -1 (only with s), flags (w leader, v isolator,
--       p paused, n nothing of this shard was stored, or that is in doubt), processes in idle or -1 (only with i), jobs in quarantine, then five lists: lost ids; ids to abort; claims of which
--       less is left than the caller holds (claim, n, id...); claimed jobs; ids whose outcome gave way to a replacement or a
--       cancellation. Of a claimed job three texts: `due` or `due attempts`, id, envelope; all of them as one text with \30 in
--       between, or as a list where a text has that in it itself. Last: since when the first one in quarantine is there, or -1
-- Cost  O((settled + renewed + claimed + 50) x log n), all bounded by the arguments; a resend only re-reads its batch
--#include keys
--#include clock
--#include layout
--#include envelope
--#include record
--#include session
--#include wake
--#include followups

local MOST = 200 -- A resend re-reads no more.
local me, seq, lease, claimLimit = ARGV[1], sequence(ARGV[2]), tonumber(ARGV[3]), math.min(MOST, tonumber(ARGV[4]))
local byteLimit, flags = tonumber(ARGV[5]), ARGV[6]
local quarantineLimit, waited = string.match(ARGV[7], '^(%d+) ?(%d*)$')
quarantineLimit, waited = math.min(MOST, tonumber(quarantineLimit)), tonumber(waited)
local deadKept, deadAge = tonumber(ARGV[9]), tonumber(ARGV[10])
local nRenewals, nGroups, nOutcomes = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local SWEEP = 50
-- A job that lost so many leases in a row is charged for the next loss in company, too: it was found at too many deaths.
local FREE_LOSSES = 3
local function flag(letter) return string.find(flags, letter, 1, true) ~= nil end

local meta = call('HMGET', META, 'layout', 'needs', 'leader', 'isolator', 'paused', 'wokenAt', 'claim', 'seenAt', 'graceUntil',
  'longestLease', 'completed', 'retried', 'dead', 'expired', 'failed', 'since', 'graceFrom', 'longestLeaseUntil')
local refused, leaving = refusal(meta[1], meta[2], true)
if refused then return refused end
local answer, stale = remembered(seq)
if answer == false then return stale end
local leader, leaderTill = holder(meta[3])
local isolator, isolatorTill = holder(meta[4])
local paused = meta[5] == '1' or leaving == true
-- Two: most claims of a fleet take the only job that is due, and then the second one is what is left.
local firstTwo = call('ZRANGE', DUE, 0, 1, 'WITHSCORES')
local headBefore = firstTwo[1] and tonumber(firstTwo[2])
local write = {}
local function put(field, value)
  write[#write + 1] = field
  write[#write + 1] = value
end
if not meta[16] then
  put('layout', LAYOUT)
  put('since', now)
end
local completed, retried, buried, expired, failed = 0, 0, 0, 0, 0
local keeps, kept = flag('k'), 0
local lost, aborted, left, superseded = {}, {}, {}, {}

-- Every key that may be written is read by a command of its type before the first write, so that a wrong type fails a step
-- that has moved nothing. In a fleet most steps find nothing, or settle what completed, and those reads would be most of what
-- they cost: a `plain` step reads what it needs. Whoever claims reads all: what it cannot settle later it must not start.
local settles, sweeps = nGroups + nOutcomes > 0, flag('s')
local plain = nOutcomes == 0 and nRenewals == 0 and not sweeps and not keeps
local due, headLeft = headBefore ~= nil and headBefore <= now, headBefore
local nQuarantined = call('ZCARD', QUARANTINE)
local idle = flag('i') and call('ZCARD', IDLE) or -1
local followups, records, errors, bursts, windows = 0, 0, 0, 0, 0
if settles or due or quarantineLimit > 0 or not plain then
  followups, records, errors = call('HLEN', FOLLOWUPS), call('HLEN', ATTEMPTS), call('HLEN', ERRORS)
end
-- What only claims reads `jobs` before it writes, and writes to `leases` first.
local onlyClaims = plain and not settles and records == 0
if not onlyClaims then call('ZCARD', LEASES) end
-- May this call change `due` in other ways than by claiming from it? Then its head is read again at the end.
local moves = not plain or followups > 0 or records > 0
local claims = quarantineLimit > 0 or claimLimit > 0 and (due or moves)
if claims or moves then
  if not onlyClaims then call('HLEN', JOBS) end
  call('ZCARD', RUNNING); call('ZCARD', DEAD)
  bursts, windows = call('HLEN', DEBOUNCE), call('ZCARD', UNIQUE)
  if keeps then call('ZCARD', COMPLETED); call('HLEN', HISTORY) end
end
-- Else the first write removes from `jobs`, and tokens were read from `running`.

-- What is kept of the errors of a job: a line that says why, one with the last error, and one in short for each of the last
-- attempts that failed, the newest first. `error` brings its own short line when it is an attempt's.
local ERRORS_KEPT, ERRORS_MOST_BYTES = 5, 65536
local function note(id, why, error)
  local text, old = why .. '\n' .. error, errors > 0 and call('HGET', ERRORS, id)
  local first = old and #old <= ERRORS_MOST_BYTES and string.find(old, '\n', 1, true)
  local from = first and string.find(old, '\n', first + 1, true)
  if from then
    local to = from
    for _ = 1, string.find(error, '\n', 1, true) and ERRORS_KEPT - 1 or ERRORS_KEPT do
      to = to and string.find(old, '\n', to + 1, true)
    end
    text = text .. string.sub(old, from, to and to - 1 or -1)
  end
  call('HSET', ERRORS, id, text)
end

-- A delay that is none must not fail the step: that would be sent again for ever, and nothing else of its queue would run.
local NO_DELAY_MS = 60000
local function delayed_by(text)
  return now + (whole(text) or NO_DELAY_MS)
end

local function bury(id, reason, error)
  call('ZADD', DEAD, now, id)
  note(id, reason, error)
  buried = buried + 1
end

local function drop(id)
  call('ZREM', RUNNING, id)
  call('ZREM', DUE, id)
  call('ZREM', QUARANTINE, id)
  call('HDEL', ATTEMPTS, id)
  call('HDEL', ERRORS, id)
  call('HDEL', JOBS, id)
end

-- Keeps completed jobs for people to look at. Called before they leave the other keys. A job that a follow-up replaces or a
-- cancellation ends is not kept: its id is another job's, or was not wanted.
local function keep(ids)
  local envelopes = call('HMGET', JOBS, unpack(ids))
  local texts = records > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}
  local scores, entries = {}, {}
  for i, id in ipairs(ids) do
    if envelopes[i] then
      scores[#scores + 1] = now
      scores[#scores + 1] = id
      entries[#entries + 1] = id
      entries[#entries + 1] = (texts[i] or '') .. '\n' .. envelopes[i]
    end
  end
  if #scores == 0 then return end
  call('HSET', HISTORY, unpack(entries))
  call('ZADD', COMPLETED, unpack(scores))
  kept = kept + #scores / 2
end

-- Does this claim still own the id? A late ending also counts while nobody has started the job again.
local function owns(id, claim, score)
  if score and tonumber(score) == claim then return true end
  if score or records == 0 then return false end
  local _, _, _, last = read_record(call('HGET', ATTEMPTS, id))
  if last ~= claim then return false end
  return call('ZSCORE', DUE, id) or call('ZSCORE', QUARANTINE, id)
end

-- 1. Settle. -----------------------------------------------------------------------------------------------------------
local touched, emptied = {}, {}
local at = 13 + nRenewals * 3
if not answer and settles then
  for _ = 1, nGroups do
    local token, n = ARGV[at + 1], tonumber(ARGV[at + 2])
    local claim = tonumber(token)
    local ids = { unpack(ARGV, at + 3, at + 2 + n) }
    at = at + 2 + n
    -- One more than are to be settled: most often these are all that the claim holds, and then nothing else need be asked.
    local members, held, scores = call('ZRANGE', RUNNING, token, token, 'BYSCORE', 'LIMIT', 0, n + 1), {}, nil
    if #members > n then scores = call('ZMSCORE', RUNNING, unpack(ids)) end
    for _, id in ipairs(members) do held[id] = token end
    local after = followups > 0 and call('HMGET', FOLLOWUPS, unpack(ids))
    local ended = {}
    for i = 1, n do
      local score = held[ids[i]]
      if not score then
        if scores then score = scores[i] else score = call('ZSCORE', RUNNING, ids[i]) end
      end
      if score and tonumber(score) == claim and not (after and after[i]) then
        ended[#ended + 1] = ids[i]
      elseif not owns(ids[i], claim, score) then
        lost[#lost + 1] = ids[i]
      elseif after and after[i] then
        follow(ids[i], after[i])
        completed = completed + 1
      else
        if keeps then keep({ ids[i] }) end
        drop(ids[i])
        completed = completed + 1
      end
    end
    if #ended > 0 then
      if keeps then keep(ended) end
      call('HDEL', JOBS, unpack(ended))
      call('ZREM', RUNNING, unpack(ended))
      if records > 0 then call('HDEL', ATTEMPTS, unpack(ended)) end
      if errors > 0 then call('HDEL', ERRORS, unpack(ended)) end
      completed = completed + #ended
    end
    if nOutcomes > 0 or not scores and #ended < #members then
      touched[#touched + 1] = claim
    elseif not scores then
      emptied[#emptied + 1] = token
    end
  end
  for _ = 1, nOutcomes do
    local verb, claim, id = ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3]
    local a, b, c = ARGV[at + 4], ARGV[at + 5], tonumber(ARGV[at + 6])
    at = at + 6
    touched[#touched + 1] = claim
    local after = followups > 0 and call('HGET', FOLLOWUPS, id)
    if not owns(id, claim, call('ZSCORE', RUNNING, id)) then
      lost[#lost + 1] = id
    elseif after then
      follow(id, after)
      superseded[#superseded + 1] = id
      if verb == 'r' or c == 1 then failed = failed + 1 end
      if verb == 'x' then expired = expired + 1 end
    else
      local charged, losses, snoozes, lostClaim, limit = read_record(call('HGET', ATTEMPTS, id))
      if verb == 'r' then
        call('ZADD', DUE, delayed_by(a), id)
        call('HSET', ATTEMPTS, id, record(charged + 1, 0, snoozes, 0, limit))
        note(id, 'retry', b)
        retried, failed = retried + 1, failed + 1
      elseif verb == 's' then
        call('ZADD', DUE, delayed_by(a), id)
        call('HSET', ATTEMPTS, id, record(charged, 0, snoozes + 1, 0, limit))
        local envelope = call('HGET', JOBS, id)
        if b ~= '' and envelope then
          local version, tail = version_of(b)
          call('HSET', JOBS, id, version .. string.sub(envelope, 2, rest_of(envelope) - 1) .. tail)
        end
      elseif verb == 'l' then
        local due = tonumber(a)
        call('ZADD', DUE, due and due == due and due or now, id)
        -- It was started again: from now on whoever lost it before is refused.
        if lostClaim > 0 then call('HSET', ATTEMPTS, id, record(charged, losses, snoozes, 0, limit)) end
      elseif verb == 'd' then
        bury(id, a, b)
        if c == 1 then failed = failed + 1 end
        if charged + c + snoozes > 0 or limit then
          call('HSET', ATTEMPTS, id, record(charged + c, 0, snoozes, 0, limit))
        else
          call('HDEL', ATTEMPTS, id)
        end
        call('ZREM', DUE, id)
      elseif verb == 'x' then
        expired = expired + 1
        drop(id)
      end
      call('ZREM', QUARANTINE, id)
      call('ZREM', RUNNING, id)
    end
  end
  if #emptied > 0 then call('ZREM', LEASES, unpack(emptied)) end
  for _, claim in ipairs(touched) do
    local text = string.format('%.0f', claim)
    if call('ZCOUNT', RUNNING, text, text) == 0 then call('ZREM', LEASES, text) end
  end
  if moves then followups, records, nQuarantined = call('HLEN', FOLLOWUPS), call('HLEN', ATTEMPTS), call('ZCARD', QUARANTINE) end
end
if buried > 0 or (sweeps and not answer) then
  local old = call('ZRANGE', DEAD, '-inf', now - deadAge, 'BYSCORE', 'LIMIT', 0, SWEEP)
  local over = math.min(math.max(SWEEP, 2 * buried), call('ZCARD', DEAD) - deadKept)
  if #old == 0 and over > 0 then old = call('ZRANGE', DEAD, 0, over - 1) end
  if #old > 0 then
    call('ZREM', DEAD, unpack(old))
    call('HDEL', ERRORS, unpack(old))
    call('HDEL', ATTEMPTS, unpack(old))
    call('HDEL', JOBS, unpack(old))
  end
end
if keeps and (kept > 0 or (sweeps and not answer)) then
  -- At least twice what was added, so that it always shrinks to what is allowed.
  local room, most, age = math.max(SWEEP, 2 * kept), tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV])
  local old = call('ZRANGE', COMPLETED, '-inf', now - age, 'BYSCORE', 'LIMIT', 0, room)
  local over = math.min(room, call('ZCARD', COMPLETED) - most)
  if #old == 0 and over > 0 then old = call('ZRANGE', COMPLETED, 0, over - 1) end
  if #old > 0 then
    call('ZREM', COMPLETED, unpack(old))
    call('HDEL', HISTORY, unpack(old))
  end
end

-- 2. Renew, before anything is taken back: a worker that was frozen and whom nobody replaced goes on. A lease of a job that
-- is alone in its process ends on .5: only such a loss is charged as an attempt, in company anyone may be the culprit. -----
local given, longest = lease, math.max(whole(meta[10]) or 0, lease)
for i = 0, nRenewals - 1 do
  local claim, held, own = ARGV[14 + i * 3], tonumber(ARGV[15 + i * 3]), tonumber(ARGV[16 + i * 3])
  local alone = own % 1 ~= 0
  own = own >= 1 and math.floor(own) or lease
  given, longest = math.max(given, own), math.max(longest, own)
  local deadline = tonumber(call('ZSCORE', LEASES, claim))
  if deadline then
    local fresh = math.max(math.floor(deadline), now + own)
    if fresh > now + longest then fresh = now + longest end
    call('ZADD', LEASES, 'XX', alone and fresh + 0.5 or fresh, claim)
  end
  local count = deadline and call('ZCOUNT', RUNNING, claim, claim) or 0
  if count < held then
    local ids = count > 0 and call('ZRANGE', RUNNING, claim, claim, 'BYSCORE', 'LIMIT', 0, 200) or {}
    left[#left + 1] = claim
    left[#left + 1] = #ids
    for _, id in ipairs(ids) do left[#left + 1] = id end
  end
  if followups > 0 and count > 0 then
    local ids = call('ZRANGE', RUNNING, claim, claim, 'BYSCORE', 'LIMIT', 0, 200)
    for n, after in ipairs(call('HMGET', FOLLOWUPS, unpack(ids))) do
      if is_cancelled(after) then aborted[#aborted + 1] = ids[n] end
    end
  end
end

-- 3. Take back. After a jump of the clock, or when nobody looked for long, deadlines prove nothing for one lease. -----------
local seen, grace, graceFrom = whole(meta[8]), whole(meta[9]) or 0, whole(meta[17]) or 0
if grace > now + longest then grace = 0 end
-- Deadlines up to here are proved: those before now, or, while a grace begins or lasts, those before one that has passed.
local proved = now >= grace and now or -1
if seen and (now < seen - 1000 or now > seen + lease / 2) then
  proved = grace > 0 and now >= grace and graceFrom or -1
  if now < grace and now > seen then
    -- A pause during a grace prolongs it; beginning anew would keep dead workers' jobs where all steps are this rare.
    grace = math.max(grace, now + math.floor(lease / 2))
  else
    grace = now + lease
    put('graceFrom', now)
  end
  put('graceUntil', grace)
end
if not seen or now < seen or now > seen + math.min(1000, lease / 8) then put('seenAt', now) end
local firstLease, takenBack = -1, 0
if sweeps then
  -- A clock that went back must not keep a dead worker's jobs for as long as it went.
  local far = call('ZRANGE', LEASES, '(' .. now + longest + 1, '+inf', 'BYSCORE', 'LIMIT', 0, SWEEP)
  for _, claim in ipairs(far) do call('ZADD', LEASES, 'XX', now + longest, claim) end
  -- Nor must whoever came to the quarantine before wait for as long.
  local ahead = nQuarantined > 0 and call('ZRANGE', QUARANTINE, '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, SWEEP) or {}
  for _, id in ipairs(ahead) do call('ZADD', QUARANTINE, 'XX', now, id) end
  if proved >= 0 and not answer then
    local over = call('ZRANGE', LEASES, '-inf', proved, 'BYSCORE', 'LIMIT', 0, SWEEP, 'WITHSCORES')
    local room = SWEEP
    for i = 1, #over, 2 do
      if room == 0 then break end
      local claim, deadline = over[i], tonumber(over[i + 1])
      -- A name that is no number was not written by us, and asking for it would fail every sweep of this shard.
      if not (string.match(claim, '^%-?%d+$') or string.match(claim, '^%-?inf$')) then
        call('ZREM', LEASES, claim)
        claim = '0'
      end
      local ids = call('ZRANGE', RUNNING, claim, claim, 'BYSCORE', 'LIMIT', 0, room)
      local alone = deadline % 1 ~= 0 and #ids == 1
      room = room - #ids
      for _, id in ipairs(ids) do
        local after = followups > 0 and call('HGET', FOLLOWUPS, id)
        if after then
          follow(id, after)
        else
          local charged, losses, snoozes, _, limit = read_record(call('HGET', ATTEMPTS, id))
          call('ZADD', QUARANTINE, now, id)
          call('HSET', ATTEMPTS, id, record(charged + (alone and 1 or 0), losses + 1, snoozes, tonumber(claim), limit))
          call('ZREM', RUNNING, id)
          nQuarantined, takenBack = nQuarantined + 1, takenBack + 1
        end
      end
      if call('ZCOUNT', RUNNING, claim, claim) == 0 then call('ZREM', LEASES, claim) end
    end
    -- A running id whose lease is gone from `leases` would never come back: give its claim one to run out.
    local oldest = call('ZRANGE', RUNNING, 0, 0, 'WITHSCORES')
    if oldest[1] then
      local claim = string.format('%.0f', tonumber(oldest[2]))
      -- No claim has such a number, so nothing would ever speak for this one.
      if tonumber(claim) ~= tonumber(oldest[2]) then call('ZADD', RUNNING, 'XX', claim, oldest[1]) end
      if not call('ZSCORE', LEASES, claim) then call('ZADD', LEASES, now + lease, claim) end
    end
    if #over > 0 then records = call('HLEN', ATTEMPTS) end
  end
  if windows > 0 then
    local gone = call('ZRANGE', UNIQUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEEP)
    if #gone > 0 then call('ZREM', UNIQUE, unpack(gone)) end
  end
  local soonest = call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')
  if soonest[1] then firstLease = math.max(math.floor(tonumber(soonest[2])) + 1, grace) end
end

-- 4. Claim. ------------------------------------------------------------------------------------------------------------------
local claim, batch, told = 0, {}, 0
local firstDue
-- One text for all, because each costs the caller.
local joins = true
local function tell_of(id, due, text, envelope)
  due = due or string.format('%.0f', due_of(envelope) or now)
  firstDue = firstDue or due
  local attempts = text and string.match(text, '^%d+ %d+ %d+ %d+ ?%d*$') -- A damaged record must not hide the envelope.
  batch[told + 1], batch[told + 2], batch[told + 3] = attempts and due .. ' ' .. attempts or due, id, envelope
  told = told + 3
  joins = joins and not (string.find(envelope, '\30', 1, true) or string.find(id, '\30', 1, true))
end

-- Redis keeps a zset of up to 128 short members as one list and reads all scores of it for each new member: 2 us for each of
-- a claim of 50, against 0.3 us in a skiplist, which it makes of it for a member this long. No id has braces.
local MAKES_SKIPLIST = '{' .. string.rep('-', 64) .. '}'
local WORTH_A_SKIPLIST = 16

local lastClaim = whole(meta[7]) or 0
-- A master whose clock is behind: what the one before it gave out may not have arrived here.
if ASKED > now + 50 and lastClaim < ASKED * 1024 then
  lastClaim = ASKED * 1024
  put('claim', string.format('%.0f', lastClaim))
end
-- `scores`: due times as text; without, they are read from the envelopes.
local function take(index, ids, scores)
  local envelopes = call('HMGET', JOBS, unpack(ids))
  local texts = records > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}
  claim = next_claim(lastClaim)
  local number, bytes, started, running, others = string.format('%.0f', claim), 0, {}, {}, {}
  local losses = 0
  for i = 1, #ids do
    local id, envelope, text = ids[i], envelopes[i], texts[i]
    if not envelope then
      if onlyClaims then call('ZCARD', LEASES) end
      bury(id, 'undecodable', '{"name":"StoredDataError","message":"The index names a job that has no record."}')
      others[#others + 1] = id
    elseif text and index == DUE and select(2, read_record(text)) > 0 then
      -- It lost leases before and was moved to `due` by hand: it must not run in company all the same.
      call('ZADD', QUARANTINE, now, id)
      others[#others + 1] = id
      nQuarantined = nQuarantined + 1
    else
      local n = #started
      bytes = bytes + #envelope
      if bytes > byteLimit and n > 0 then break end
      started[n + 1] = id
      if index == QUARANTINE then losses = select(2, read_record(text)) end
      running[2 * n + 1] = number
      running[2 * n + 2] = id
      tell_of(id, scores and scores[i], text, envelope)
    end
  end
  if #started > 0 then
    local alone = #started == 1 and (flag('a') or losses >= FREE_LOSSES)
    call('ZADD', LEASES, alone and now + lease + 0.5 or now + lease, number)
    if #started >= WORTH_A_SKIPLIST then
      call('ZADD', RUNNING, number, MAKES_SKIPLIST, unpack(running))
      call('ZREM', RUNNING, MAKES_SKIPLIST)
    else
      call('ZADD', RUNNING, unpack(running))
    end
    put('claim', number)
    if bursts > 0 then call('HDEL', DEBOUNCE, unpack(started)) end
    call('ZREM', index, unpack(started))
  else
    claim = 0
  end
  if #others > 0 then call('ZREM', index, unpack(others)) end
end

if answer then
  -- A resend: read the batch again by its claim number, so that it never holds a job that has gone since.
  local number, names = string.match(answer, '^(%d+) ?(.*)$')
  claim = tonumber(number)
  for id in string.gmatch(names, '[^\n]+') do
    if string.sub(id, 1, 1) == '\t' then superseded[#superseded + 1] = string.sub(id, 2) else lost[#lost + 1] = id end
  end
  local ids = claim > 0 and call('ZRANGE', RUNNING, number, number, 'BYSCORE', 'LIMIT', 0, 200) or {}
  if #ids > 0 then
    local envelopes, texts = call('HMGET', JOBS, unpack(ids)), call('HMGET', ATTEMPTS, unpack(ids))
    for i, id in ipairs(ids) do
      if envelopes[i] then
        tell_of(id, nil, texts[i], envelopes[i])
      end
    end
  end
elseif not paused then
  if nQuarantined > 0 and (flag('v') or quarantineLimit > 0) then
    -- The role is for a process that has to stop its queues; one that holds nothing may take suspects whoever has it.
    if not waited and (not isolator or isolator == me) then
      if not isolator or isolatorTill < now + ROLE_MS / 2 then
        put('isolator', me .. ' ' .. string.format('%.0f', now + ROLE_MS))
      end
      isolator = me
    end
    if quarantineLimit > 0 then
      local ids = waited and call('ZRANGE', QUARANTINE, '-inf', now - waited, 'BYSCORE', 'LIMIT', 0, quarantineLimit)
        or call('ZRANGE', QUARANTINE, 0, quarantineLimit - 1)
      -- A few together at the first loss; from the second one at a time, so that the culprit is found.
      local few = {}
      for i, text in ipairs(#ids > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}) do
        local losses = select(2, read_record(text or ''))
        if losses > 1 then
          if i == 1 then few[1] = ids[1] end
          break
        end
        few[i] = ids[i]
      end
      if #few > 0 then take(QUARANTINE, few); moves = true end
      nQuarantined = call('ZCARD', QUARANTINE)
    end
  elseif isolator == me and nQuarantined == 0 then
    put('isolator', '')
    isolator = nil
  end
  if claims and quarantineLimit == 0 then
    local second = tonumber(firstTwo[4])
    if not moves and not (second and second <= now) then
      take(DUE, { firstTwo[1] }, { firstTwo[2] })
      headLeft = second
    else
      local found = call('ZRANGE', DUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, claimLimit, 'WITHSCORES')
      if #found > 0 then
        local ids, scores = {}, {}
        for i = 1, #found / 2 do ids[i], scores[i] = found[2 * i - 1], found[2 * i] end
        take(DUE, ids, scores)
        moves = true
      end
    end
  end
end
if not answer and (settles or claim > 0 or IN_DOUBT) then
  local names = table.concat(lost, '\n')
  if #superseded > 0 then names = names .. '\n\t' .. table.concat(superseded, '\n\t') end
  remember(seq, string.format('%.0f ', claim) .. names)
end

-- 5. Who waits for the next head. -----------------------------------------------------------------------------------------------
local head = headLeft
if moves then head = head_of_due() end
local claimed = told / 3
local free = claimLimit > claimed or flag('f')
local late = claimed > 0 and now - (tonumber(firstDue) or now) > 20
local woken
if free then
  if flag('i') then
    call('ZADD', IDLE, now + tonumber(ARGV[8]), me)
    -- Processes that died in their sleep.
    local gone = call('ZRANGE', IDLE, '-inf', now - ROLE_MS, 'BYSCORE', 'LIMIT', 0, 10)
    if #gone > 0 then call('ZREM', IDLE, unpack(gone)) end
  end
  if not leader or late or (leader == me and leaderTill < now + ROLE_MS / 2) then
    put('leader', me .. ' ' .. string.format('%.0f', now + ROLE_MS))
    leader = me
  end
elseif not flag('b') then
  redis.pcall('ZREM', IDLE, me) -- Like all that is only for waking: it must not fail a step.
  if leader == me then
    local successor = sleepers(1)[1]
    leader = successor
    put('leader', successor and successor .. ' ' .. string.format('%.0f', now + ROLE_MS) or '')
    woken = successor
  end
end
local toSelf = (free or flag('b')) and leader == me
if not paused and (takenBack > 0 and nQuarantined > 0 or not toSelf and must_wake(headBefore, head, tonumber(meta[6]))) then
  put('wokenAt', now)
  woken = woken or true
end

if completed > 0 then put('completed', (whole(meta[11]) or 0) + completed) end
if retried > 0 then put('retried', (whole(meta[12]) or 0) + retried) end
if buried > 0 then put('dead', (whole(meta[13]) or 0) + buried) end
if expired > 0 then put('expired', (whole(meta[14]) or 0) + expired) end
if failed > 0 then put('failed', (whole(meta[15]) or 0) + failed) end
-- Leases of this length may run until `longestTill`. Then it shrinks to what is needed: it is how far the clock may go back
-- before a dead worker's leases are cut, and one extend() by a day must not set that for ever.
local till = whole(meta[18]) or 0
if given >= (whole(meta[10]) or 0) then
  if longest ~= whole(meta[10]) then put('longestLease', longest) end
  if till < now + longest / 2 or till > now + longest then put('longestLeaseUntil', now + longest) end
elseif sweeps and not answer and proved == now and (now > till or till > now + longest) then
  local last = call('ZRANGE', LEASES, 0, 0, 'REV', 'WITHSCORES')
  local needed = math.max(given, last[1] and math.ceil(tonumber(last[2])) - now or 0)
  put('longestLease', needed)
  put('longestLeaseUntil', now + needed)
end
if #write > 0 then call('HSET', META, unpack(write)) end
if woken == true then wake(leader, me) elseif woken then tell(woken) end

local roles = (leader == me and 'w' or '') .. (isolator == me and 'v' or '') .. (paused and 'p' or '')
  .. ((not meta[16] or IN_DOUBT) and 'n' or '')
head = head and math.max(0, math.min(head, 9e15)) or -1
local jobs = joins and table.concat(batch, '\30') or batch
local oldest = nQuarantined > 0 and tonumber(call('ZRANGE', QUARANTINE, 0, 0, 'WITHSCORES')[2]) or -1
oldest = math.max(-1, math.min(oldest, 9e15))
return { now, claim, head, firstLease, roles, idle, nQuarantined, lost, aborted, left, jobs, superseded, oldest }
