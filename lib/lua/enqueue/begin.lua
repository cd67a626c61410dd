-- Ends the call when it is refused, comes too late, already ran, or comes while publishing is paused.
-- Needs the arguments. Gives `seq` and the fields of `meta` by name.

local seq = sequence(ARGV[1])
local replied, leader, paused, wokenAt, enqueuedBefore, since, publishingPaused = begin(seq, false, 'leader', 'paused', 'wokenAt', 'enqueued', 'since', 'publishingPaused')
if replied then return replied end

if publishingPaused == '1' then
  -- Remembered like every answer: a copy of this call that arrives after the pause is refused as well.
  local more = -1
  for _, count in ipairs(counts) do more = more + count end
  local answer = now .. ' b - 0' .. (more > 0 and ' =' .. more or '')
  remember(seq, answer)
  return answer
end

--#if limits
-- The first group or priority makes this a queue with groups.
check_groups()
local begun = adopts and begin_groups(call('HGET', META, 'needs'))
--#end
