-- Claims exactly these waiting jobs, to move them to another queue: under a lease, as a worker would, but also before they are
-- due and while the queue is paused. `followups` tells how to give them back (`=` and the due time): whatever ends the claim, the end
-- of its lease included, puts those that did not leave back as they were, uncharged and never early.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 lease ms   3 byte limit   then the ids, at most 200, each once
-- Reply text: claim number or 0, then per id `h<due>` reserved, r running, x dead or n notFound; of fewer ids when the bytes are many
-- Cost  O(n log n) for n <= 200
--#include keys
--#include clock
--#include layout
--#include envelope
--#if limits
--#include groups
--#include changed
--#include wake
--#else
--#include changed
--#end
--#include session
--#include begin
--#include claim-number
--#include lease

local seq, lease, byteLimit = sequence(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local replied, lastClaim, longestLease = begin(seq, false, 'claim', 'longestLease')
if replied then return replied end

local ids = { unpack(ARGV, 4) }
--#if limits
check_groups()
local head = moment()
--#end
call('ZCARD', LEASES)
local due, running = call('ZMSCORE', DUE, unpack(ids)), call('ZMSCORE', RUNNING, unpack(ids))
local dead, quarantined = call('ZMSCORE', DEAD, unpack(ids)), call('ZMSCORE', QUARANTINE, unpack(ids))
local envelopes, after = call('HMGET', JOBS, unpack(ids)), call('HMGET', FOLLOWUPS, unpack(ids))

-- When to give back a job that was reserved by a process that then died: this queue may have no worker to recover it.
local function abandoned(n)
  if not after[n] or string.sub(after[n], 1, 1) ~= '=' then return nil end
  local deadline = tonumber(call('ZSCORE', LEASES, claim_name(tonumber(running[n]))))
  if not deadline or deadline < now then return string.sub(after[n], 2) end
end

local words, held, claims, nexts, before, bytes = {}, {}, {}, {}, {}, 0
local claim = claim_name(next_claim(whole(lastClaim)))
for n, id in ipairs(ids) do
  local back
  if running[n] then
    back = abandoned(n)
  elseif envelopes[n] then
    -- A job in quarantine has no due time in its index. In `due` its losses still send it to the quarantine when it is claimed.
    back = due[n] or quarantined[n] and string.format('%.0f', due_of(envelopes[n]) or now)
  end
  if back and envelopes[n] then
    bytes = bytes + #envelopes[n]
    if bytes > byteLimit and #held > 0 then break end
    held[#held + 1] = id
    claims[#claims + 1] = claim
    claims[#claims + 1] = id
    nexts[#nexts + 1] = id
    nexts[#nexts + 1] = '=' .. back
    if running[n] then before[claim_name(tonumber(running[n]))] = true end
    words[n] = 'h' .. back
  else
    words[n] = running[n] and 'r' or dead[n] and 'x' or 'n'
  end
end

if #held > 0 then
  call('ZADD', LEASES, now + lease, claim)
  call('HSET', FOLLOWUPS, unpack(nexts))
  call('ZADD', RUNNING, unpack(claims))
--#if limits
  depart(unpack(held))
  free(unpack(held))
--#end
  call('ZREM', DUE, unpack(held))
  call('ZREM', QUARANTINE, unpack(held))
  for old in pairs(before) do
    end_lease_if_empty(old)
  end
  -- Without it a sweep would cut this lease to the longest one that workers have.
  mark_changed() -- It may be the only lease, and no due time leads workers to it.
  call('HSET', META, 'claim', claim, 'longestLease', math.max(whole(longestLease) or 0, lease))
end
local answer = (#held > 0 and claim or '0') .. ' ' .. table.concat(words, ' ')
remember(seq, answer)
--#limits wake_for_room(head)
return answer
