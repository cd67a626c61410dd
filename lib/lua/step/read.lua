-- Reads the arguments, and all that the shard must show before this call may write.
-- Needs KEYS and ARGV. Gives the arguments and the fields of `meta` by name, the head of `due`, and what this step does: `settles`, `sweeps`,
-- `claims`, `moves`. Ends the call when it is refused or comes too late; `answer` is set when this very call already ran.

local MOST = 200 -- A resend re-reads no more.
local me, seq, lease = ARGV[1], sequence(ARGV[2]), tonumber(ARGV[3])
local claimLimit, ahead = string.match(ARGV[4], '^(%d+) ?(%d*)$')
claimLimit, ahead = math.min(MOST, tonumber(claimLimit)), tonumber(ahead) or 0
local byteLimit, flags = tonumber(ARGV[5]), ARGV[6]
local quarantineLimit, waited = string.match(ARGV[7], '^(%d+) ?(%d*)$')
quarantineLimit, waited = math.min(MOST, tonumber(quarantineLimit)), tonumber(waited)
local deadKept, deadAge = tonumber(ARGV[9]), tonumber(ARGV[10])
local nRenewals, nGroups, nOutcomes = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local SWEEP = 50
-- A job that lost so many leases in a row is charged for the next loss even where it was not the only job
-- of its process: it was found at too many deaths.
local FREE_LOSSES = 3
local function flag(letter) return string.find(flags, letter, 1, true) ~= nil end

local meta = call('HMGET', META, 'layout', 'needs', 'leader', 'isolator', 'paused', 'wokenAt', 'claim', 'seenAt', 'graceUntil',
  'longestLease', 'completed', 'retried', 'dead', 'expired', 'failed', 'since', 'graceFrom', 'longestLeaseUntil',
  'lateAt', 'lease')
local refused, leaving = refusal(meta[1], meta[2], true)
if refused then return refused end
-- A copy of a step that ran says once more what its worker was like: which leases it renewed, and that it had no room. Of later steps those
-- without news are not remembered; so a copy that comes too late must not say so. Who still waits for it sends it again.
local answer, stale = remembered(seq, true)
if answer == false then return stale end
-- In the order in which they were asked for; false for a field that is not there.
local leaderEntry, isolatorEntry, pausedEntry, wokenAt, claimBefore, seenAt, graceUntil,
  longestBefore, completedBefore, retriedBefore, deadBefore, expiredBefore, failedBefore, since, graceFrom, longestUntil,
  lateAt = unpack(meta, 3)
local leader, leaderTill = holder(leaderEntry)
local isolator, isolatorTill = holder(isolatorEntry)
local paused = pausedEntry == '1' or leaving == true
-- Two: most claims of a fleet take the only job that is due, and then the second one is what is left.
--#if limits
call('ZCARD', DUE)
check_groups()
local headBefore = moment()
--#else
local firstTwo = call('ZRANGE', DUE, 0, 1, 'WITHSCORES')
local headBefore = firstTwo[1] and tonumber(firstTwo[2])
--#end
local write = {}
local function put(field, value)
  write[#write + 1] = field
  write[#write + 1] = value
end
if not since then put('since', now) end
-- Since layout 2 workers may rest: a library that knows only the first one would change jobs without a mark for them.
if (whole(meta[1]) or 0) < 2 then put('layout', LAYOUT) end
local completed, retried, buried, expired, failed = 0, 0, 0, 0, 0
local keeps, kept = flag('k'), 0
local lost, aborted, left, superseded = {}, {}, {}, {}

-- Every key that may be written is read by a command of its type before the first write, so that a wrong type fails a step
-- that has moved nothing. In a fleet most steps find nothing, or settle what completed, and those reads would be most of what
-- they cost: a `plain` step reads what it needs. A step that claims reads all: what
-- it cannot settle later it must not start.
local settles, sweeps = nGroups + nOutcomes > 0, flag('s')
--#if limits
local plain = false -- The head of a queue with groups is read anew in any case.
--#else
local plain = nOutcomes == 0 and nRenewals == 0 and not sweeps and not keeps
--#end
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
-- What is wanted beyond the free slots of this worker waits in its process: not while another worker would run it at once, nor where
-- what is claimed counts for a limit.
local slots = claimLimit - ahead
--#if limits
if limits.counts then claimLimit, ahead = slots, 0 end
--#end
if ahead > 0 and due then
  local waiting = sleepers(2)
  for i = 1, #waiting, 2 do
    -- Who entered longer ago rests, or is dead.
    if waiting[i] ~= me and leads_until(waiting[i + 1]) then claimLimit = slots end
  end
end
local claims = quarantineLimit > 0 or claimLimit > 0 and (due or moves)
if claims or moves then
  if not onlyClaims then call('HLEN', JOBS) end
  call('ZCARD', RUNNING); call('ZCARD', DEAD)
  bursts, windows = call('HLEN', DEBOUNCE), call('ZCARD', UNIQUE)
  if keeps then call('ZCARD', COMPLETED); call('HLEN', HISTORY) end
end
-- Else the first write removes from `jobs`, and tokens were read from `running`.
