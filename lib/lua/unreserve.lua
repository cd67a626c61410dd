-- Ends what reserve.lua began: jobs that another queue holds by now are removed, the others are given back as they were.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 claim   3 how many of the ids left   then the ids: first those that left, then the others
-- Reply text: per id g gone, b given back, f followed by a replacement, c cancelled meanwhile (whatever
--       follows here), l no longer held by that claim
-- Cost  O(n log n) for n <= 200
--#include keys
--#include clock
--#include layout
--#include envelope
--#if limits
--#include groups
--#end
--#include session
--#include begin
--#include claim-number
--#include lease
--#include erase
--#include changed
--#include wake
--#include followups

local seq, claim, leaving = sequence(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local replied, leader, paused, wokenAt = begin(seq, true, 'leader', 'paused', 'wokenAt')
if replied then return replied end

local head = head_of_due()
--#limits check_groups()
call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', QUARANTINE); call('ZCARD', LEASES)
call('ZCARD', IDLE); call('ZCARD', UNIQUE)
local ids = { unpack(ARGV, 4) }
local running, after = call('ZMSCORE', RUNNING, unpack(ids)), call('HMGET', FOLLOWUPS, unpack(ids))
local envelopes = call('HMGET', JOBS, unpack(ids))
local words = {}
for n, id in ipairs(ids) do
  local held = not after[n] or string.sub(after[n], 1, 1) == '='
  if tonumber(running[n]) ~= claim then
    words[n] = 'l'
  elseif held and n <= leaving then
    words[n] = 'g'
    call('ZREM', RUNNING, id)
    call('HDEL', FOLLOWUPS, id)
    call('HDEL', DEBOUNCE, id)
    erase(id)
  else
    words[n] = held and 'b' or is_cancelled(after[n]) and 'c' or 'f'
    follow(id, after[n] or '=' .. string.format('%.0f', due_of(envelopes[n] or '') or now))
  end
end
end_lease_if_empty(claim_name(claim))
local answer = table.concat(words, ' ')
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer
