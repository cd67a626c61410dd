-- An event comes before the due time of a waiting job: the job gets another payload and is due now, both or none. What is due
-- already keeps its place. Everything else stays, as in update.lua, which says why a caller names the header.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 id   3 '' for a job without a header, or the one in the answer `h`
--       4 header and payload as lib/job/envelope.ts wrote them
-- Reply text `outcome state due` (g signalled, r running, x dead, n notFound; states as in enqueue: where the job was), or `h ` and
--       the stored text up to the payload, when the header is another one: nothing was changed
-- Cost  O(log n), plus the length of the payload
--#include keys
--#include clock
--#include layout
--#include envelope
--#limits --#include groups
--#include record
--#include session
--#include begin
--#include place
--#include payload
--#include changed
--#include wake

local seq, id, known, content = sequence(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end

local head = head_of_due()
--#limits check_groups()
call('HLEN', ATTEMPTS); call('ZCARD', IDLE)
local envelope = call('HGET', JOBS, id)
local place, due = place_of(id)
local answer = (NOT_WAITING[place] or NOT_WAITING.n) .. ' 0'
if place == 'w' and envelope then
  local text, shown = with_payload(envelope, known, content)
  if not text then
    answer = 'h ' .. shown
  else
    local state = (due and due > now) and 'l' or 'd'
    if state == 'l' then
      call('ZADD', DUE, now, id) --#limits set_due(now, id, text); free(id)
      text, due = moved(text, now), now
    end
    call('HSET', JOBS, id, text)
    -- A worker that lost its lease ran the old payload.
    disown(id)
    if state == 'l' then call('ZREM', QUARANTINE, id) end
    answer = 'g ' .. state .. string.format(' %.0f', due or now)
  end
end
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer
