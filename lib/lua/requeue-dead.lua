-- Makes dead letters due again. Without forgetting they get exactly one more run, whatever they died of and whatever their
-- handler allows by then.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number   2 delay ms   3 1 = forget the attempts   4 spread ms (0 none): the n-th of total gets n/total
--       5 died before (ms, or -1)   6 reason or ''   7 of all: where to go on, as the call before replied, or '' for the oldest
--       8 position of the first in the spread   9 total of the spread   10 most to move (0..200)   then the ids, or none for the oldest
--       ones. No number of those to be passed over: some of them may have gone
-- Reply text: moved, looked at, dead letters left; of all then score and id of the last one that was looked at
-- Cost  O(n log n) for n <= 200
--#include keys
--#include clock
--#include layout
--#include envelope
--#if limits
--#include groups
--#end
--#include record
--#include session
--#include begin
--#include changed
--#include wake
--#include behind

local seq, delay, forget, spread = sequence(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1', tonumber(ARGV[4])
local before, reason = tonumber(ARGV[5]), ARGV[6]
local position, total, most = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end

local head = head_of_due()
--#limits check_groups()
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('ZCARD', DEAD); call('ZCARD', IDLE)
local ids = { unpack(ARGV, 11) }
local place = ''
if #ids == 0 and most > 0 then
  local score, id = string.match(ARGV[7], '^(%S+) (.+)$')
  local from, past = score and place_behind(DEAD, score, id) or 0, call('ZCOUNT', DEAD, '-inf', before >= 0 and '(' .. before or '+inf')
  if from < past then ids = call('ZRANGE', DEAD, from, math.min(from + most, past) - 1) end
  local last = ids[#ids]
  if last then place = ' ' .. call('ZSCORE', DEAD, last) .. ' ' .. last end
end
local count = 0
for _, id in ipairs(ids) do
  local died = tonumber(call('ZSCORE', DEAD, id))
  local why = died and reason ~= '' and string.match(call('HGET', ERRORS, id) or '', '^([^\n]*)')
  if died and (before < 0 or died < before) and (reason == '' or why == reason) then
    local extra = spread > 0 and math.floor(spread * (position + count) / math.max(1, total)) or 0
    local due, envelope = now + delay + extra, call('HGET', JOBS, id)
    call('ZADD', DUE, due, id) --#limits set_due(due, id, envelope)
    if envelope then call('HSET', JOBS, id, moved(envelope, due)) end
    if forget then
      call('HDEL', ATTEMPTS, id)
    else
      local charged, _, snoozes = read_record(call('HGET', ATTEMPTS, id))
      call('HSET', ATTEMPTS, id, record(charged, 0, snoozes, 0, charged + 1))
    end
    call('ZREM', DEAD, id)
    count = count + 1
  end
end
local answer = string.format('%d %d %d', count, #ids, call('ZCARD', DEAD)) .. place
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer
