-- Moves waiting jobs to other due times, as reschedule.lua does one.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 1 = only if that is sooner (run now)   then per job (200 at most): id, d|a|n|b, ms, when it must
--       be due, ms, or ''
--         d delay from now   a instant   n instant, but never sooner than it is due   b ms later than it is due (in quarantine: from now)
-- Reply text, per job `outcome state due` as of reschedule.lua, or m, its state and 0: it is due at another time and was left alone
-- Cost  O(n log n) for n <= 200
--#include keys
--#include clock
--#include layout
--#include envelope
--#limits --#include groups
--#include record
--#include session
--#include begin
--#include place
--#include rescheduling
--#include changed
--#include wake

local seq, onlySooner = sequence(ARGV[1]), ARGV[2] == '1'
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end

local head = head_of_due()
--#limits check_groups()
-- Also what is read of each job: of a wrong type it would stop the call after it has changed others.
call('ZCARD', RUNNING); call('ZCARD', QUARANTINE); call('ZCARD', DEAD)
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('ZCARD', IDLE)
local how, ms
local function target_of(due)
  if how == 'd' then return now + ms end
  if how == 'b' then return (due or now) + ms end
  if how == 'n' then return math.max(due or now, ms) end
  return ms
end
local answers = {}
for i = 3, #ARGV, 4 do
  how, ms = ARGV[i + 1], tonumber(ARGV[i + 2])
  answers[#answers + 1] = reschedule_one(ARGV[i], target_of, onlySooner, tonumber(ARGV[i + 3]))
end
local answer = table.concat(answers, ' ')
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer
