-- Gives a waiting job another payload. Everything else stays: due time, expiry, attempts, and the options of its
-- enqueue. That stands in the header of the stored text, whose content is for TypeScript alone. So the caller says
-- which header it took over: none, or the one in the answer `h`.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 id   3 '' for a job without a header, or the one in the answer `h`
--       4 header and payload as lib/job/envelope.ts wrote them
-- Reply text `outcome state due` (u updated, r running, x dead, n notFound; states as in enqueue), or `h ` and the stored text up
--       to the payload, when the header is another one: nothing was changed
-- Cost  O(log n), plus the length of the payload
--#include keys
--#include clock
--#include layout
--#include envelope
--#include record
--#include session
--#include begin
--#include place
--#include payload

local seq, id, known, content = sequence(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local replied = begin(seq, false)
if replied then return replied end

call('HLEN', ATTEMPTS)
local envelope = call('HGET', JOBS, id)
local place, due = place_of(id)
local answer = (NOT_WAITING[place] or NOT_WAITING.n) .. ' 0'
if place == 'w' and envelope then
  local text, head = with_payload(envelope, known, content)
  if not text then
    answer = 'h ' .. head
  else
    call('HSET', JOBS, id, text)
    -- A worker that lost its lease ran the old payload.
    disown(id)
    due = due or due_of(envelope) or now
    answer = 'u ' .. (due <= now and 'd' or 'l') .. string.format(' %.0f', due)
  end
end
remember(seq, answer)
return answer
