-- Cancels jobs as cancel.lua does one.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 1 = also when running   then per job (200 at most): id, when it must be due, ms, or ''
-- Reply text, per job `outcome state` as of cancel.lua, or m and its state: it is due at another time and was left alone
-- Cost  O(n log n) for n <= 200
--#include keys
--#include clock
--#include layout
--#if limits
--#include envelope
--#include groups
--#include changed
--#include wake
--#end
--#include session
--#include begin
--#include erase
--#include place
--#include cancelling

local seq, evenRunning = sequence(ARGV[1]), ARGV[2] == '1'
local replied = begin(seq, false)
if replied then return replied end

--#if limits
check_groups()
local head = moment()
--#end
-- Also what is read of each job: of a wrong type it would stop the call after it has changed others.
call('ZCARD', DUE); call('ZCARD', RUNNING); call('ZCARD', QUARANTINE); call('ZCARD', DEAD)
call('HLEN', JOBS); call('HLEN', FOLLOWUPS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
local answers = {}
for i = 3, #ARGV, 2 do
  answers[#answers + 1] = cancel_one(ARGV[i], evenRunning, tonumber(ARGV[i + 1]))
end
local answer = table.concat(answers, ' ')
remember(seq, answer)
--#limits wake_for_room(head)
return answer
